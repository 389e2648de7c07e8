//! `io-autotune accelerators check`: checks a catalogue file.

use std::path::Path;

use io_autotune_catalogue::{Accelerator, AcceleratorError, Fault, in_file};

use crate::service::CliError;

/// Reads a catalogue file as the service does; says what it describes. Errs with every fault, one a
/// line: `FILE:LINE:COLUMN: ...`.
pub(crate) fn check(file: &Path) -> Result<String, CliError> {
    let text = std::fs::read_to_string(file).map_err(|source| CliError::Unreadable {
        path: file.to_owned(),
        source,
    })?;
    match Accelerator::parse(&text) {
        Ok(accelerator) => Ok(described(&accelerator)),
        Err(AcceleratorError(faults)) => Err(refused(file, &faults)),
    }
}

/// Every fault of a file, one a line.
pub(crate) fn refused(file: &Path, faults: &[Fault]) -> CliError {
    CliError::CatalogueFile(format!("\n{}", in_file(file, faults)))
}

fn described(accelerator: &Accelerator) -> String {
    let mut text = format!(
        "{}: {} parameters, at most {} parametrizations\n",
        accelerator.name,
        accelerator.space.parameters().len(),
        accelerator.space.size()
    );
    for words in accelerator.ways() {
        text.push_str(&format!("  {words}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let text = include_str!("../../../deploy/accelerators.d/romio.toml");
        std::fs::write(&path, text).unwrap();
        let good = check(&path).unwrap();
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
