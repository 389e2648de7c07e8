use io_autotune_model::Parameter;
use io_autotune_protocol::{AcceleratorDetail, AcceleratorSummary, shown_lines};

use super::columns::{Column, Columns};
use crate::screen::Screen;

const NOT_TRIED: &str = "not run on the real thing";

pub(crate) fn accelerators(list: &[AcceleratorSummary], screen: &Screen) -> String {
    let mut table = Columns::new(vec![
        Column::left("Name"),
        Column::right("Parameters"),
        Column::left("Needs").least(8),
        Column::left("Tried on").least(10),
        Column::left("Title").least(10),
    ]);
    for accelerator in list {
        let default = if accelerator.is_default {
            " (default)"
        } else {
            ""
        };
        let name = format!("{}{default}", accelerator.name);
        table.row([
            name,
            accelerator.parameters.len().to_string(),
            needs(accelerator),
            tried_on(accelerator).to_owned(),
            accelerator.title.clone(),
        ]);
    }
    table.text(screen)
}

pub(crate) fn accelerator(detail: &AcceleratorDetail, screen: &Screen) -> String {
    let summary = &detail.summary;
    let mut text = shown_lines(&format!(
        "name          {}\ntitle         {}\ntakes effect  {}\nneeds         {}\ntried on      {}\n\n{}\n\n",
        summary.name,
        summary.title,
        detail.takes_effect,
        needs(summary),
        tried_on(summary),
        detail.description,
    ));
    let mut table = Columns::new(vec![
        Column::left("Parameter"),
        Column::left("Default"),
        Column::left("Unit"),
        Column::left("Values").least(12),
        Column::left("What it does").least(12),
    ]);
    for parameter in detail.space.parameters() {
        table.row([
            parameter.name.clone(),
            parameter.default.to_string(),
            parameter.unit.clone().unwrap_or_else(|| "-".into()),
            values(parameter),
            parameter.description.clone().unwrap_or_default(),
        ]);
    }
    text.push_str(&table.text(screen));
    let constraints = detail.space.constraints().iter();
    let constraints = constraints.map(|one| format!("constraint    {one}\n"));
    let ways = detail.delivery.iter();
    let ways = ways.map(|way| format!("delivered by  {way}\n"));
    let recipes = detail.recipes.iter();
    let recipes = recipes.map(|recipe| format!("recipe        {recipe}\n"));
    let risks = detail.risks.iter();
    let risks = risks.map(|risk| format!("at risk       {risk}\n"));
    let left_out = detail.at_risk.iter().map(|name| {
        format!("left out      what is at risk, unless a job asks for --io-autotune={name}\n")
    });
    let lines = constraints
        .chain(ways)
        .chain(recipes)
        .chain(risks)
        .chain(left_out);
    text + &shown_lines(&lines.collect::<String>())
}

fn values(parameter: &Parameter) -> String {
    match &parameter.when {
        Some(condition) => format!("{}, where {}", parameter.choices(), condition.words()),
        None => parameter.choices(),
    }
}

fn needs(accelerator: &AcceleratorSummary) -> String {
    match accelerator.needs.as_slice() {
        [] => "-".to_owned(),
        needs => needs.join(", "),
    }
}

fn tried_on(accelerator: &AcceleratorSummary) -> &str {
    accelerator.tried_on.as_deref().unwrap_or(NOT_TRIED)
}
