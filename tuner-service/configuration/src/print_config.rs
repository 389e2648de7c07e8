//! The configuration in force, as TOML that reads back as the same; a comment has the source of
//! each value.

use std::fmt::Write;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::Serialize;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, by its path.
    File(String, usize),
    /// An environment variable.
    Environment(&'static str),
    /// An option of the command line.
    CommandLine(String),
    /// The program's default.
    Default,
}

impl Origin {
    /// The source of an option with a long name, which may also have an environment variable.
    #[must_use]
    pub fn of(matches: &ArgMatches, option: &str, variable: &'static str) -> Self {
        match matches.value_source(option) {
            Some(ValueSource::CommandLine) => {
                Self::CommandLine(format!("--{}", option.replace('_', "-")))
            }
            Some(ValueSource::EnvVariable) => Self::Environment(variable),
            _ => Self::Default,
        }
    }

    fn comment(&self) -> String {
        match self {
            Self::File(path, line) => format!("{path}:{line}"),
            Self::Environment(name) => format!("environment: {name}"),
            Self::CommandLine(option) => format!("command line: {option}"),
            Self::Default => "default".to_owned(),
        }
    }
}

/// A file that was read.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// The file's path.
    pub path: &'a Path,
    /// The text; `None` if there is no file.
    pub text: Option<&'a str>,
    /// Earlier names of keys that are still read, with the present ones: `("study.loss",
    /// "study.regret")`.
    pub renamed: &'a [(&'a str, &'a str)],
}

/// The reason why a configuration cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShownError {
    /// The configuration contains a value that TOML cannot express.
    #[error("the configuration cannot be shown: {0}")]
    Unsayable(#[from] toml::ser::Error),
}

/// The text to show, to which configurations are added.
#[derive(Debug, Default)]
pub struct Shown(String);

impl Shown {
    /// Adds a comment line about the whole.
    pub fn note(&mut self, what: &str, origin: &Origin) {
        let _ = writeln!(self.0, "# {} ({})", one_line(what), origin.comment());
    }

    /// Adds the configuration in force with a file, below a table of this name, or below none if
    /// the name is empty.
    ///
    /// # Errors
    ///
    /// If the configuration contains a value that TOML cannot express.
    pub fn file(
        &mut self,
        name: &str,
        config: &impl Serialize,
        file: File<'_>,
    ) -> Result<(), ShownError> {
        let config = Table::try_from(config)?;
        let text = file.text.unwrap_or_default();
        let parsed = DeTable::parse(text).ok();
        let writer = Writer { text, file };
        let place: Vec<&str> = [name].into_iter().filter(|name| !name.is_empty()).collect();
        let read = parsed.as_ref().map(Spanned::get_ref);
        if !place.is_empty() {
            self.header("[", &place, "]");
        }
        writer.table(&mut self.0, &place, &[], &config, read);
        Ok(())
    }

    /// Adds options of the command line, below a table of this name.
    pub fn options(&mut self, name: &str, options: &[(&str, Value, Origin)]) {
        self.header("[", &[name], "]");
        for (key, value, origin) in options {
            line(&mut self.0, key, value, origin);
        }
    }

    fn header(&mut self, open: &str, place: &[&str], close: &str) {
        header(&mut self.0, open, place, close);
    }

    /// The whole text.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

struct Writer<'a> {
    text: &'a str,
    file: File<'a>,
}

impl Writer<'_> {
    /// Writes a table. `place` is its place in the text that is shown, `keys` that in its file, and
    /// `read` is the table as the file has it.
    fn table(
        &self,
        out: &mut String,
        place: &[&str],
        keys: &[&str],
        table: &Table,
        read: Option<&DeTable<'_>>,
    ) {
        for (key, value) in table {
            if !is_table(value) {
                let origin = match self.find(keys, key, read) {
                    Some((line, _)) => {
                        Origin::File(one_line(&self.file.path.to_string_lossy()), line)
                    }
                    None => Origin::Default,
                };
                line(out, key, value, &origin);
            }
        }
        for (key, value) in table {
            let place: Vec<&str> = place.iter().copied().chain([key.as_str()]).collect();
            let below: Vec<&str> = keys.iter().copied().chain([key.as_str()]).collect();
            let found = self.find(keys, key, read).map(|(_, value)| value);
            match value {
                Value::Table(table) => {
                    header(out, "[", &place, "]");
                    self.table(out, &place, &below, table, found.and_then(as_table));
                }
                Value::Array(rows) if is_table(value) => {
                    for (index, row) in rows.iter().enumerate() {
                        header(out, "[[", &place, "]]");
                        let found = match found {
                            Some(DeValue::Array(rows)) => rows.get(index).map(Spanned::get_ref),
                            _ => None,
                        };
                        if let Value::Table(table) = row {
                            self.table(out, &place, &below, table, found.and_then(as_table));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The line and value of a key in the file, also under an earlier name.
    fn find<'t>(
        &self,
        keys: &[&str],
        key: &str,
        read: Option<&'t DeTable<'t>>,
    ) -> Option<(usize, &'t DeValue<'t>)> {
        let now = keys
            .iter()
            .copied()
            .chain([key])
            .collect::<Vec<_>>()
            .join(".");
        let earlier = self.file.renamed.iter().filter(|(_, name)| *name == now);
        let earlier = earlier.filter_map(|(earlier, _)| earlier.rsplit('.').next());
        let (name, value) = [key]
            .into_iter()
            .chain(earlier)
            .find_map(|name| read?.get_key_value(name))?;
        let before = self.text.get(..name.span().start)?;
        Some((before.matches('\n').count() + 1, value.get_ref()))
    }
}

fn as_table<'t>(value: &'t DeValue<'t>) -> Option<&'t DeTable<'t>> {
    match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Returns true for a value that is shown below a header of its own.
fn is_table(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(rows) => !rows.is_empty() && rows.iter().all(Value::is_table),
        _ => false,
    }
}

fn header(out: &mut String, open: &str, place: &[&str], close: &str) {
    let place: Vec<String> = place.iter().map(|key| quoted(key)).collect();
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{open}{}{close}", place.join("."));
}

fn line(out: &mut String, key: &str, value: &Value, origin: &Origin) {
    let _ = writeln!(out, "{} = {value} # {}", quoted(key), origin.comment());
}

/// A key in TOML's notation.
fn quoted(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.bytes().all(plain) {
        return key.to_owned();
    }
    let mut text = String::from("\"");
    for letter in key.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(text, "\\u{:04X}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text + "\""
}

/// A text without characters that would end a comment.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn shown(config: &Table, text: &str) -> String {
        let file = File {
            path: Path::new("/etc/x.toml"),
            text: Some(text),
            renamed: &[("study.loss", "study.regret")],
        };
        let mut shown = Shown::default();
        shown.file("", config, file).unwrap();
        shown.text()
    }

    #[test]
    fn each_value_says_where_it_is_from() {
        let text = "auth = \"munge\"\n\n[study.loss]\nshare = 0.1\n[[allow]]\nname = \"a\"\n[[allow]]\nname = \"b\"\n";
        let config: Table = toml::from_str(
            "auth = \"munge\"\nlast = [1, 2]\n[study]\nbudget = 50\n[study.regret]\nshare = 0.1\nmost = 2.0\n\
             [[allow]]\nname = \"a\"\n[[allow]]\nname = \"b\"\nmin = 1\n",
        )
        .unwrap();
        let expected = r#"auth = "munge" # /etc/x.toml:1
last = [1, 2] # default

[[allow]]
name = "a" # /etc/x.toml:6

[[allow]]
min = 1 # default
name = "b" # /etc/x.toml:8

[study]
budget = 50 # default

[study.regret]
most = 2.0 # default
share = 0.1 # /etc/x.toml:4
"#;
        assert_eq!(shown(&config, text), expected);
        assert_eq!(toml::from_str::<Table>(expected).unwrap(), config);
    }

    #[test]
    fn options_say_where_they_are_from() {
        let command = clap::Command::new("x")
            .arg(
                clap::Arg::new("spool_dir")
                    .long("spool-dir")
                    .default_value("/s"),
            )
            .arg(clap::Arg::new("cluster").long("cluster"));
        let matches = command.get_matches_from(["x", "--cluster", "c"]);
        let mut shown = Shown::default();
        let origin = |option| Origin::of(&matches, option, "X");
        shown.note("a\nb", &origin("cluster"));
        shown.options(
            "collector",
            &[
                ("cluster", "c".into(), origin("cluster")),
                ("spool_dir", "/s".into(), origin("spool_dir")),
            ],
        );
        assert_eq!(
            shown.text(),
            "# a?b (command line: --cluster)\n\n[collector]\n\
             cluster = \"c\" # command line: --cluster\nspool_dir = \"/s\" # default\n"
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Boolean),
            any::<i64>().prop_map(Value::Integer),
            (-1e300..1e300).prop_map(Value::Float),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|table| Value::Table(table.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_configuration_is_read_again_as_it_is(
            config in btree_map(any::<String>(), values(), 0..5), text in any::<String>()
        ) {
            let config: Table = config.into_iter().collect();
            let shown = shown(&config, &text);
            prop_assert_eq!(toml::from_str::<Table>(&shown).unwrap(), config);
        }
    }
}
