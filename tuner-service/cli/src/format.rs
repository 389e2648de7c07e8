//! The columns of `history`, and `--format`.

use std::str::FromStr;

/// A column that `--format` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) right: bool,
    /// It may be cut down to so many columns.
    pub(crate) least: Option<usize>,
}

const fn field(name: &'static str, right: bool, least: Option<usize>) -> Field {
    Field { name, right, least }
}

const FIELDS: [Field; 26] = [
    field("JobID", false, None),
    field("Restarts", true, None),
    field("Application", false, Some(8)),
    field("User", false, Some(6)),
    field("Accelerator", false, Some(6)),
    field("Study", true, None),
    field("Epoch", true, None),
    field("Cluster", false, Some(6)),
    field("Node", false, Some(6)),
    field("Nodes", true, None),
    field("Start", false, None),
    field("End", false, None),
    field("Phase", false, None),
    field("Role", false, None),
    field("State", false, Some(8)),
    field("Elapsed", true, None),
    field("Counts", false, None),
    field("Why", false, Some(12)),
    field("Change", false, Some(10)),
    field("Given", false, Some(10)),
    field("Reason", false, Some(12)),
    field("Read", true, None),
    field("Written", true, None),
    field("StorageRead", true, None),
    field("StorageWritten", true, None),
    field("Run", true, None),
];

const USUAL: [&str; 8] = [
    "JobID",
    "Application",
    "Start",
    "Role",
    "Elapsed",
    "State",
    "Counts",
    "Change",
];

/// A column of `--format`, with its width if that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) field: Field,
    /// The width, and whether to the right.
    pub(crate) width: Option<(usize, bool)>,
}

impl FromStr for Wanted {
    type Err = String;

    /// `Name`, `Name%20` or `Name%-20`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, width) = match text.split_once('%') {
            None => (text, None),
            Some((name, width)) => (name, Some(width)),
        };
        let mut fields = FIELDS.into_iter();
        let field = fields
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("there is no column {name:?}; there are {}", fields_listed()))?;
        let width = width.map(|width| {
            let (digits, right) = match width.strip_prefix('-') {
                Some(digits) => (digits, false),
                None => (width, true),
            };
            let number = digits.parse::<usize>().ok();
            let number = number.filter(|number| (1..=1000).contains(number));
            let wrong = || format!("{width:?} is no width: write {name}%20, or {name}%-20");
            number.map(|number| (number, right)).ok_or_else(wrong)
        });
        Ok(Self {
            field,
            width: width.transpose()?,
        })
    }
}

/// All names of columns.
pub(crate) fn fields_listed() -> String {
    FIELDS.map(|field| field.name).join(", ")
}

/// Every column, for `--csv`.
pub(crate) fn all_fields() -> Vec<Wanted> {
    let all = FIELDS.into_iter();
    all.map(|field| Wanted { field, width: None }).collect()
}

/// The columns where none are named.
pub(crate) fn usual(of_several_users: bool) -> Vec<Wanted> {
    let all = all_fields().into_iter();
    let is_usual = |name| USUAL.contains(&name) || (of_several_users && name == "User");
    all.filter(|wanted| is_usual(wanted.field.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_named_as_sacct_does_it() {
        let wanted: Wanted = "jobid".parse().unwrap();
        assert_eq!((wanted.field.name, wanted.width), ("JobID", None));
        let wanted: Wanted = "Change%30".parse().unwrap();
        assert_eq!(wanted.width, Some((30, true)));
        let wanted: Wanted = "Change%-30".parse().unwrap();
        assert_eq!(wanted.width, Some((30, false)));
        assert!(
            "Mood"
                .parse::<Wanted>()
                .unwrap_err()
                .contains("JobID, Restarts")
        );
        for wrong in ["Change%", "Change%x", "Change%0", "Change%5000"] {
            assert!(
                wrong.parse::<Wanted>().unwrap_err().contains("Change%20"),
                "{wrong}"
            );
        }
        assert_eq!(usual(false).len(), USUAL.len());
        assert_eq!(usual(true)[2].field.name, "User");
    }
}
