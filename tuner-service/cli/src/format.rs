//! The columns of `history` and `audit`, and `--format`.

/// A column that `--format` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) right: bool,
    /// The least width to which it may be cut.
    pub(crate) least: Option<usize>,
}

const fn field(name: &'static str, right: bool, least: Option<usize>) -> Field {
    Field { name, right, least }
}

/// The columns of `history`.
pub(crate) const RUN_FIELDS: [Field; 27] = [
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
    field("Because", false, Some(12)),
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

/// The columns of `audit`.
pub(crate) const LINE_FIELDS: [Field; 9] = [
    field("Line", true, None),
    field("Time", false, Some(5)),
    field("By", false, Some(6)),
    field("Action", false, Some(6)),
    field("Of", false, Some(10)),
    field("What", false, Some(10)),
    field("Until", false, None),
    field("Undone", false, Some(6)),
    field("Why", false, Some(10)),
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
    /// The width, with true if the text is on the right.
    pub(crate) width: Option<(usize, bool)>,
}

impl Wanted {
    /// Every one of these columns.
    pub(crate) fn all(fields: &[Field]) -> Vec<Self> {
        let all = fields.iter();
        let wanted = |field: &Field| Self {
            field: *field,
            width: None,
        };
        all.map(wanted).collect()
    }

    /// A column of `history`.
    pub(crate) fn of_run(text: &str) -> Result<Self, String> {
        Self::of(&RUN_FIELDS, text)
    }

    /// A column of `audit`.
    pub(crate) fn of_line(text: &str) -> Result<Self, String> {
        Self::of(&LINE_FIELDS, text)
    }

    /// `Name`, `Name%20` or `Name%-20` of these columns.
    pub(crate) fn of(fields: &[Field], text: &str) -> Result<Self, String> {
        let (name, width) = match text.split_once('%') {
            None => (text, None),
            Some((name, width)) => (name, Some(width)),
        };
        let mut found = fields.iter().copied();
        let field = found
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("there is no column {name:?}; there are {}", listed(fields)))?;
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

/// All names of these columns.
pub(crate) fn listed(fields: &[Field]) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}

/// The columns that are shown if none are named.
pub(crate) fn usual(of_several_users: bool, of_several_clusters: bool) -> Vec<Wanted> {
    let all = Wanted::all(&RUN_FIELDS).into_iter();
    let is_usual = |name| match name {
        "User" => of_several_users,
        "Cluster" => of_several_clusters,
        _ => USUAL.contains(&name),
    };
    all.filter(|wanted| is_usual(wanted.field.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_of_a_million_lines_fits_a_narrow_terminal() {
        let shown = LINE_FIELDS.iter().filter(|field| field.name != "Until");
        // Otherwise a line's number, or a short time.
        let width = |field: &Field| field.least.unwrap_or(if field.right { 7 } else { 11 });
        let widths: Vec<usize> = shown.map(width).collect();
        let gaps = 2 * (widths.len() - 1);
        assert!(widths.iter().sum::<usize>() + gaps <= 80, "{widths:?}");
    }

    #[test]
    fn a_column_is_named_as_sacct_does_it() {
        let wanted = Wanted::of_run("jobid").unwrap();
        assert_eq!((wanted.field.name, wanted.width), ("JobID", None));
        let wanted = Wanted::of_run("Change%30").unwrap();
        assert_eq!(wanted.width, Some((30, true)));
        let wanted = Wanted::of_run("Change%-30").unwrap();
        assert_eq!(wanted.width, Some((30, false)));
        let wrong = |text| Wanted::of_run(text).unwrap_err();
        assert!(wrong("Mood").contains("JobID, Restarts"));
        let no_line = Wanted::of_line("Mood").unwrap_err();
        assert!(no_line.contains("Line, Time"), "{no_line}");
        for text in ["Change%", "Change%x", "Change%0", "Change%5000"] {
            assert!(wrong(text).contains("Change%20"), "{text}");
        }
        assert_eq!(usual(false, false).len(), USUAL.len());
        assert_eq!(usual(true, false)[2].field.name, "User");
    }
}
