use std::fmt;
use std::ops::Range;

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The fault, and what to write instead.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.problem
        )
    }
}

/// The reason why a catalogue file was refused: all its faults, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct AcceleratorError(pub Vec<Fault>);

pub(crate) struct Faults<'a> {
    text: &'a str,
    found: Vec<Fault>,
}

impl<'a> Faults<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    pub(crate) fn at(&mut self, place: &Range<usize>, problem: impl Into<String>) {
        let mut start = place.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        self.found.push(Fault {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem: problem.into(),
        });
    }

    pub(crate) fn finish(self) -> Result<(), AcceleratorError> {
        let found = self.sorted();
        if found.is_empty() {
            Ok(())
        } else {
            Err(AcceleratorError(found))
        }
    }

    /// The faults in the order of their lines.
    pub(crate) fn sorted(mut self) -> Vec<Fault> {
        self.found.sort_by_key(|fault| (fault.line, fault.column));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_as_an_editor_counts() {
        let text = "a = 1\nä = x\n";
        let mut faults = Faults::of(text);
        faults.at(&(text.find('x').unwrap()..0), "second");
        faults.at(&(0..1), "first");
        faults.at(&(999..1000), "last");
        let AcceleratorError(found) = faults.finish().unwrap_err();
        let places: Vec<_> = found.iter().map(|f| (f.line, f.column)).collect();
        assert_eq!(places, [(1, 1), (2, 5), (3, 1)]);
        assert_eq!(found[0].to_string(), "line 1, column 1: first");
    }
}
