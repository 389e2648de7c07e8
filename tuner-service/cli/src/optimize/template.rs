//! A command with the names of parameters in braces, and what becomes of it in a run.

use std::collections::BTreeMap;
use std::ffi::OsString;

use io_autotune_configuration::nearest;
use io_autotune_engine::Space;
use serde_json::{Map, Value as Json};

use super::error::OptimizeError;

/// The number of the place among the runs at once, where no parameter has this name.
const SLOT: &str = "slot";

/// The words of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    words: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Parameter(String),
    Slot,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Invocation {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// `TUNED_NAME`, for each parameter.
    pub(super) environment: Vec<(String, Option<OsString>)>,
}

impl Template {
    /// Reads a command. Errs on a brace that is none of a pair, and on a name that is no parameter's.
    pub(super) fn parse(command: &[String], space: &Space) -> Result<Self, OptimizeError> {
        let words = command.iter().map(|word| pieces(word, space));
        let words: Vec<Vec<Piece>> = words.collect::<Result<_, _>>()?;
        let program = words.first().into_iter().flatten();
        let may_be_absent = |piece: &Piece| matches!(piece, Piece::Parameter(name) if space.parameters().iter().any(|one| one.name == *name && one.when.is_some()));
        if program.into_iter().any(may_be_absent) {
            return Err(OptimizeError::Options(
                "the program is named by a parameter that does not exist in each run: name it by one that does".to_owned(),
            ));
        }
        let mut variables = BTreeMap::new();
        for one in space.parameters() {
            if let Some(other) = variables.insert(variable(&one.name), &one.name) {
                return Err(OptimizeError::Options(format!(
                    "{other} and {} would share {} in the command's environment: rename one of them",
                    one.name,
                    variable(&one.name)
                )));
            }
        }
        Ok(Template { words })
    }

    /// The parameters that no word has, in words; none if each is in one.
    pub(super) fn unused(&self, space: &Space) -> Option<String> {
        let pieces: Vec<&Piece> = self.words.iter().flatten().collect();
        let is_used = |name: &String| pieces.contains(&&Piece::Parameter(name.clone()));
        let unused: Vec<&str> = space
            .parameters()
            .iter()
            .filter(|one| !is_used(&one.name))
            .map(|one| one.name.as_str())
            .collect();
        (!unused.is_empty()).then(|| unused.join(", "))
    }

    /// The command with these values. A word with a parameter that does not exist is left out.
    pub(super) fn fill(&self, values: &Map<String, Json>, slot: u32) -> Vec<String> {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Parameter(name) => values.get(name).map(text_of),
            Piece::Slot => Some(slot.to_string()),
        };
        let word = |pieces: &Vec<Piece>| -> Option<String> { pieces.iter().map(text).collect() };
        self.words.iter().filter_map(word).collect()
    }

    /// The command with these values.
    pub(super) fn invocation(
        &self,
        values: &Map<String, Json>,
        slot: u32,
        space: &Space,
    ) -> Invocation {
        let named = space.parameters().iter().map(|parameter| {
            let value = values.get(&parameter.name);
            (
                variable(&parameter.name),
                value.map(|one| text_of(one).into()),
            )
        });
        Invocation {
            words: self.fill(values, slot),
            environment: named.collect(),
        }
    }

    /// The command line with these values, as a shell reads it.
    pub(super) fn line(&self, values: &Map<String, Json>) -> String {
        line_of(&self.fill(values, 1))
    }
}

/// Words as a shell reads them.
pub(super) fn line_of(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The environment variable of a parameter.
fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("TUNED_{}", name.chars().map(letter).collect::<String>())
}

pub(super) fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn pieces(word: &str, space: &Space) -> Result<Vec<Piece>, OptimizeError> {
    let names: Vec<&str> = space
        .parameters()
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    let refused = |problem: String| Err(OptimizeError::Options(format!("{word:?}: {problem}")));
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(place) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(place);
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let inner = from
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let Some((name, after)) = inner else {
            return refused(
                "a brace without its other one: a brace itself is written twice, as {{ or }}"
                    .to_owned(),
            );
        };
        let piece = match names.contains(&name) {
            true => Piece::Parameter(name.to_owned()),
            false if name == SLOT => Piece::Slot,
            false => {
                let meant = nearest(name, names.iter().copied());
                let hint = match meant {
                    Some(meant) => format!("did you mean {{{meant}}}?"),
                    None => format!("there are {}", names.join(", ")),
                };
                return refused(format!(
                    "{{{name}}} is no parameter of the space: {hint} A brace itself is written twice, as {{{{"
                ));
            }
        };
        pieces.extend((!text.is_empty()).then(|| Piece::Text(std::mem::take(&mut text))));
        pieces.push(piece);
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use io_autotune_optimize::SpaceFile;
    use serde_json::json;

    use super::*;

    fn space() -> Space {
        let text = r#"{"parameters": [
            {"name": "level", "kind": "int", "values": [1, 2, 3]},
            {"name": "long", "kind": "categorical", "values": ["off", "on"]},
            {"name": "window", "kind": "int", "values": [20, 21, 22], "when": {"parameter": "long", "is": ["on"]}}]}"#;
        SpaceFile::parse(text, Path::new("a.json")).unwrap().space
    }

    fn template(words: &[&str]) -> Result<Template, OptimizeError> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Template::parse(&words, &space())
    }

    fn filled(words: &[&str], values: Json) -> Vec<String> {
        let values = values.as_object().unwrap().clone();
        template(words).unwrap().fill(&values, 7)
    }

    #[test]
    fn names_in_braces_become_values_and_double_braces_one() {
        let words = [
            "zstd",
            "-{level}",
            "{{{level}}}",
            "a{{b}}",
            "",
            "out.{slot}",
        ];
        assert_eq!(
            filled(&words, json!({"level": 2, "long": "off"})),
            ["zstd", "-2", "{2}", "a{b}", "", "out.7"]
        );
    }

    #[test]
    fn a_word_with_what_does_not_exist_is_left_out() {
        let words = ["zstd", "--long={window}", "in"];
        assert_eq!(
            filled(&words, json!({"level": 1, "long": "off"})),
            ["zstd", "in"]
        );
        let on = json!({"level": 1, "long": "on", "window": 21});
        assert_eq!(filled(&words, on), ["zstd", "--long=21", "in"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (words, said) in [
            (&["a", "{lvel}"][..], "did you mean {level}?"),
            (&["a", "{zzzz}"], "there are level, long, window"),
            (&["a", "{level"], "written twice"),
            (&["a", "level}"], "written twice"),
            (&["{window}"], "does not exist in each run"),
        ] {
            let error = template(words).unwrap_err().to_string();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }

    #[test]
    fn values_are_in_the_environment_too_and_what_does_not_exist_is_not() {
        let values = json!({"level": 2, "long": "off"});
        let invocation =
            template(&["true"])
                .unwrap()
                .invocation(values.as_object().unwrap(), 1, &space());
        let named = |name: &str| {
            invocation
                .environment
                .iter()
                .find(|(one, _)| one == name)
                .unwrap()
        };
        assert_eq!(named("TUNED_level").1, Some("2".into()));
        assert_eq!(named("TUNED_window").1, None);
        assert_eq!(
            template(&["a", "{level}"])
                .unwrap()
                .unused(&space())
                .unwrap(),
            "long, window"
        );
    }

    #[test]
    fn two_parameters_do_not_share_a_variable() {
        let text = r#"{"parameters": [
            {"name": "a-b", "kind": "int", "values": [1, 2]},
            {"name": "a_b", "kind": "int", "values": [1, 2]}]}"#;
        let space = SpaceFile::parse(text, Path::new("a.json")).unwrap().space;
        let error = Template::parse(&["true".to_owned()], &space).unwrap_err();
        assert!(
            error.to_string().contains("would share TUNED_a_b"),
            "{error}"
        );
    }

    #[test]
    fn a_line_is_as_a_shell_reads_it() {
        let words = ["a b", "it's", "", "--x=1", "$HOME"].map(str::to_owned);
        assert_eq!(line_of(&words), r"'a b' 'it'\''s' '' --x=1 '$HOME'");
    }
}
