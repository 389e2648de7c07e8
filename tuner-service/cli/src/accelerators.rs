//! `io-autotune accelerators check`: checks a catalogue file.

use std::path::Path;

use io_autotune_catalogue::{Accelerator, AcceleratorError, Fault, in_file};
use io_autotune_configuration::read_text;
use io_autotune_model::{Space, stays_settled};
use io_autotune_protocol::SpaceInUse;

use crate::service::CliError;

/// Reads a catalogue file as the service does. Returns an error with every fault, one a line:
/// `FILE:LINE:COLUMN: ...`.
pub(crate) fn check(file: &Path) -> Result<Accelerator, CliError> {
    let text = read_text(file).map_err(|source| CliError::Unreadable {
        path: file.to_owned(),
        source,
    })?;
    Accelerator::parse(&text).map_err(|AcceleratorError(faults)| refused(file, &faults))
}

/// A text on how the studies of an accelerator continue once its file is this one.
pub(crate) fn studies(space: &Space, in_use: &[SpaceInUse]) -> String {
    let (mut same, mut settled, mut on, mut again) = (0, 0, 0, 0);
    for one in in_use {
        let place = match (one.space.offers_the_same(space), one.settled) {
            (true, _) => &mut same,
            (false, true) if stays_settled(&one.space, space) => &mut settled,
            (false, true) => &mut again,
            (false, false) => &mut on,
        };
        *place += one.studies;
    }
    let all = [
        (same, "go on as they are"),
        (
            settled,
            "stay settled with what is claimed of them; `reset` explores what is new",
        ),
        (on, "search on, with the runs that still fit"),
        (again, "had settled and search again"),
    ];
    let lines = all.iter().filter(|(count, _)| *count > 0);
    let lines: String = lines
        .map(|(count, what)| format!("  {count} of its studies {what}\n"))
        .collect();
    match lines.is_empty() {
        true => "  it has no study yet\n".to_owned(),
        false => lines,
    }
}

/// Every fault of a file, one a line.
pub(crate) fn refused(file: &Path, faults: &[Fault]) -> CliError {
    CliError::CatalogueFile(format!("\n{}", in_file(file, faults)))
}

pub(crate) fn described(accelerator: &Accelerator) -> String {
    let mut text = format!(
        "{}: {} parameters, at most {} parametrizations\n",
        accelerator.name,
        accelerator.space.parameters().len(),
        accelerator.space.size()
    );
    for words in accelerator.ways() {
        text.push_str(&format!("  {words}\n"));
    }
    for recipe in accelerator.recipes_told() {
        text.push_str(&format!("  recipe: {recipe}\n"));
    }
    for risk in accelerator.risks_told() {
        text.push_str(&format!("  at risk: {risk}\n"));
    }
    if let Some(other) = &accelerator.at_risk {
        text.push_str(&format!(
            "  left out what is at risk; {}, with it, has at most {} parametrizations\n",
            other.name,
            other.space.size()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_told_by_what_becomes_of_them() {
        let space = |values: &str, default: i64| -> Space {
            let text = format!(
                r#"[{{"name": "size", "kind": "ordered", "values": {values}, "default": {default}}}]"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let in_use = |space: Space, settled, studies| SpaceInUse {
            space,
            settled,
            studies,
        };
        let old = [
            in_use(space("[1, 2]", 1), true, 3),
            in_use(space("[1, 2]", 1), false, 5),
            in_use(space("[1, 2, 4]", 1), true, 7),
            in_use(space("[1, 2, 4]", 2), true, 2),
        ];
        let told = studies(&space("[1, 2, 4]", 1), &old);
        let lines: Vec<&str> = told.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 4, "{told}");
        for (line, expected) in lines.iter().zip([
            "7 of its studies go on as they are",
            "3 of its studies stay settled",
            "5 of its studies search on",
            "2 of its studies had settled and search again",
        ]) {
            assert!(line.starts_with(expected), "{line}");
        }
        assert!(studies(&space("[1]", 1), &[]).contains("no study yet"));
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let text = include_str!("../../../deploy/accelerators.d/romio.toml");
        std::fs::write(&path, text).unwrap();
        let good = described(&check(&path).unwrap());
        assert!(good.starts_with("romio: 9 parameters, "), "{good}");

        let line = text
            .lines()
            .position(|line| line.starts_with("variable"))
            .unwrap()
            + 1;
        std::fs::write(&path, text.replace("\"ROMIO_HINTS\"", "\"PATH\"")).unwrap();
        let told = check(&path).unwrap_err().to_string();
        let place = format!("{}:{line}:12: variable = \"PATH\"", path.display());
        assert!(told.contains(&place), "{told}");
        assert!(check(&directory.path().join("none.toml")).is_err());
    }
}
