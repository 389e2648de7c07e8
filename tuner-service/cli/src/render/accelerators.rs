use io_autotune_model::Parameter;
use io_autotune_protocol::{AcceleratorDetail, AcceleratorSummary};

use super::table;

const NOT_TRIED: &str = "not run on the real thing";

pub(crate) fn accelerators(list: &[AcceleratorSummary]) -> String {
    let mut table = table(&["name", "parameters", "needs", "tried on", "title"]);
    for accelerator in list {
        let name = if accelerator.is_default {
            format!("{} (default)", accelerator.name)
        } else {
            accelerator.name.clone()
        };
        table.add_row([
            name,
            accelerator.parameters.len().to_string(),
            needs(accelerator),
            tried_on(accelerator).to_owned(),
            accelerator.title.clone(),
        ]);
    }
    format!("{table}\n")
}

pub(crate) fn accelerator(detail: &AcceleratorDetail) -> String {
    let summary = &detail.summary;
    let mut text = format!(
        "name          {}\ntitle         {}\ntakes effect  {}\nneeds         {}\ntried on      {}\n\n{}\n\n",
        summary.name,
        summary.title,
        detail.takes_effect,
        needs(summary),
        tried_on(summary),
        detail.description,
    );
    let mut table = table(&["parameter", "default", "unit", "values", "what it does"]);
    for parameter in detail.space.parameters() {
        table.add_row([
            parameter.name.clone(),
            parameter.default.to_string(),
            parameter.unit.clone().unwrap_or_else(|| "-".into()),
            values(parameter),
            parameter.description.clone().unwrap_or_default(),
        ]);
    }
    text.push_str(&format!("{table}\n"));
    for constraint in detail.space.constraints() {
        text.push_str(&format!("constraint    {constraint}\n"));
    }
    for way in &detail.delivery {
        text.push_str(&format!("delivered by  {way}\n"));
    }
    text
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
