use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use io_autotune_configuration::parse_recoverable;
use io_autotune_model::{Constraint, Moments, Parameter, Recipe, Space, UsedIf};
use serde::Deserialize;
use toml::Spanned;

use crate::Part;
use crate::delivery::{Deliveries, is_plain_name};
use crate::fault::{AcceleratorError, Faults};
use crate::need::Need;
use crate::read_back::ReadBack;
use crate::recipe::{self, Offer};
use crate::risk::{self, AT_RISK, Risk};
use crate::space::Described;

/// Something with I/O parameters that a job can be given, or several such accelerators that are
/// tuned together.
#[derive(Clone, Debug)]
pub struct Accelerator {
    /// The name that users type, `--io-autotune=NAME`; for several the sorted names joined with
    /// `+`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A description, in a paragraph.
    pub description: String,
    /// When a parameter takes effect, in the accelerator's own terms (`MPI_File_open`).
    pub takes_effect: String,
    /// The real accelerator that the file was tried on; `None`: only the delivery was tried, on a
    /// stand-in.
    pub tried_on: Option<String>,
    /// Requirements in addition to a job that asks for it.
    pub needs: Vec<Need>,
    /// The condition under which it can matter to a job; `None`: no measure shows that.
    pub used_if: Option<UsedIf>,
    /// The parameters.
    pub space: Space,
    /// The delivery of a parametrization and its read-back, for each file.
    pub parts: Vec<Part>,
    /// Settings that were published for it.
    pub recipes: Vec<Offer>,
    /// The values of the space that change more than the time of a job.
    pub risks: Vec<Risk>,
    /// The accelerator with the values that this one leaves out because of their risk, if the file
    /// has any.
    pub at_risk: Option<Arc<Accelerator>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    takes_effect: String,
    tried_on: Option<String>,
    #[serde(default)]
    needs: Vec<Need>,
    used_if: Option<UsedIf>,
    #[serde(default)]
    constraints: Vec<Spanned<Constraint>>,
    parameters: Vec<Spanned<Parameter>>,
    #[serde(default)]
    risks: Vec<risk::Entry>,
    #[serde(default)]
    recipes: Vec<recipe::Entry>,
    delivery: Deliveries,
    read_back: Option<ReadBack>,
}

impl Accelerator {
    /// Reads the text of one catalogue file. Returns an error with every wrong line and what to
    /// write instead.
    pub fn parse(text: &str) -> Result<Self, AcceleratorError> {
        let mut faults = Faults::of(text);
        let read = parse_recoverable::<Document>(text);
        for one in &read.found {
            faults.at(&one.place, one.problem.as_str());
        }
        // Otherwise parts of the file were left out, and what seems to be missing may only be
        // wrong.
        let is_whole = read.found.is_empty();
        let (is_delivery_whole, is_space_whole) =
            (delivery_is_whole(text), Described::is_whole(text));
        let Some(document) = read.value else {
            faults.finish()?;
            unreachable!("a fault was noted");
        };
        let is_there = is_whole || !document.name.get_ref().is_empty();
        if is_there && !is_plain_name(document.name.get_ref()) {
            let problem = format!(
                "name = {:?}: use letters, digits, '.', '_' and '-', starting with a letter or digit ('+' stands between accelerators that are tuned together)",
                document.name.get_ref()
            );
            faults.at(&document.name.span(), problem);
        }
        let wrong = if is_whole {
            BTreeSet::new()
        } else {
            names(text)
        };
        let known: BTreeSet<&str> = document
            .parameters
            .iter()
            .map(|parameter| parameter.get_ref().name.as_str())
            .chain(wrong.iter().map(String::as_str))
            .collect();
        let carried = document.delivery.check(&known, &mut faults);
        document
            .delivery
            .check_online(&document.parameters, &mut faults);
        let to_deliver = document.parameters.iter().filter(|_| is_delivery_whole);
        for parameter in to_deliver {
            let name = parameter.get_ref().name.as_str();
            if !carried.contains(name) {
                let problem = format!(
                    "parameter {name:?} is not delivered by anything: name it in a [[delivery.environment]], [[delivery.files]], [[delivery.settings]], [[delivery.directives]], [[delivery.command.environment]] or [delivery.online] entry"
                );
                faults.at(&parameter.span(), problem);
            }
        }
        if let Some(read_back) = &document.read_back {
            read_back.check(&known, &mut faults);
        }
        for need in document.delivery.needs() {
            if is_delivery_whole && !document.needs.contains(&need) {
                let problem = match need {
                    Need::BurstBuffer => {
                        "Slurm's burst buffer completes directives: write needs = [\"burst_buffer\"]"
                            .to_owned()
                    }
                    Need::Exclusive | Need::Root => format!(
                        "what root does on nodes, it does on those that the job has to itself: write needs = [\"exclusive\", \"root\"] ({need} is missing)"
                    ),
                };
                faults.at(&document.name.span(), problem);
            }
        }
        let space = match document.described().space() {
            Ok(space) => Some(space),
            Err(found) => {
                for (place, error) in found.iter().filter(|_| is_space_whole) {
                    faults.at(place, error.to_string());
                }
                None
            }
        };
        let risks = match is_space_whole {
            true => risk::risks(&document.risks, &document.parameters, &mut faults),
            false => Vec::new(),
        };
        if let Some(space) = space.as_ref().filter(|_| is_space_whole) {
            recipe::check(&document.recipes, space, &mut faults);
        }
        let safe = space
            .as_ref()
            .map(|space| risk::space_without(space, &risks));
        let safe = safe.transpose().unwrap_or_else(|error| {
            let problem = format!("without the values of [[risks]]: {error}");
            faults.at(&document.name.span(), problem);
            None
        });
        faults.finish()?;
        let Some((space, safe)) = space.zip(safe) else {
            unreachable!("a fault was noted")
        };
        let name = document.name.into_inner();
        let part = Part {
            of: name.clone(),
            space: safe.clone(),
            deliveries: document.delivery,
            read_back: document.read_back,
            renamed: BTreeMap::new(),
        };
        let accelerator = Self {
            name,
            title: document.title,
            description: document.description,
            takes_effect: document.takes_effect,
            tried_on: document.tried_on,
            needs: document.needs,
            used_if: document.used_if,
            recipes: recipe::offers(&document.recipes, &safe),
            space: safe,
            parts: vec![part],
            risks: Vec::new(),
            at_risk: None,
        };
        let at_risk = (!risks.is_empty()).then(|| Self {
            recipes: recipe::offers(&document.recipes, &space),
            ..accelerator.at_risk(space, risks)
        });
        Ok(Self {
            at_risk: at_risk.map(Arc::new),
            ..accelerator
        })
    }

    /// The accelerator with all the values of its file, under a name of its own.
    fn at_risk(&self, space: Space, risks: Vec<Risk>) -> Self {
        let mut other = self.clone();
        other.name.push_str(AT_RISK);
        for part in &mut other.parts {
            part.of.clone_from(&other.name);
            part.space = space.clone();
        }
        Self {
            title: format!("{}, with values at risk", self.title),
            space,
            risks,
            ..other
        }
    }

    /// The risks of its values, or of those that it leaves out, one line each.
    #[must_use]
    pub fn risks_told(&self) -> Vec<String> {
        let left_out = self.at_risk.iter().flat_map(|other| &other.risks);
        let risks = self.risks.iter().chain(left_out);
        risks.map(ToString::to_string).collect()
    }

    /// The recipes for a job whose runs of the default have these measures, in the file's order.
    #[must_use]
    pub fn recipes_for(&self, measures: &BTreeMap<String, Moments>) -> Vec<Recipe> {
        let fitting = self.recipes.iter().filter(|offer| offer.fits(measures));
        fitting.map(|offer| offer.recipe.clone()).collect()
    }

    /// The recipes, one line each: a name, the values that it changes, why, and its source.
    #[must_use]
    pub fn recipes_told(&self) -> Vec<String> {
        let default = self.space.default();
        let told = self.recipes.iter().map(|Offer { recipe, .. }| {
            let values = recipe.parametrization.0.iter();
            let changed = values.filter(|(name, value)| default.0.get(*name) != Some(*value));
            let changed: Vec<String> = changed
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!(
                "{}: {}: {} ({})",
                recipe.name,
                changed.join(" "),
                recipe.why,
                recipe.source
            )
        });
        told.collect()
    }

    /// Each delivery in a few words, for people.
    #[must_use]
    pub fn ways(&self) -> Vec<String> {
        let alone = self.parts.len() == 1;
        let of_part = |part: &Part| {
            let whose = if alone {
                String::new()
            } else {
                format!("{}: ", part.of)
            };
            let words = part.deliveries.words().into_iter();
            words
                .map(|words| whose.clone() + &words)
                .collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }
}

impl Document {
    fn described(&self) -> Described<'_> {
        Described {
            parameters: &self.parameters,
            constraints: &self.constraints,
            otherwise: self.name.span(),
        }
    }
}

/// Returns true if all parameters, the deliveries and the needs can be read.
fn delivery_is_whole(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Only {
        #[serde(rename = "parameters")]
        _parameters: Vec<Parameter>,
        #[serde(default, rename = "needs")]
        _needs: Vec<Need>,
        #[serde(rename = "delivery")]
        _delivery: Deliveries,
    }
    toml::from_str::<Only>(text).is_ok()
}

/// The names of all parameters, including those that are wrong in another way.
fn names(text: &str) -> BTreeSet<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        parameters: Vec<OnlyName>,
    }
    #[derive(Deserialize)]
    struct OnlyName {
        name: Option<String>,
    }
    let named = toml::from_str::<Named>(text).map(|named| named.parameters);
    let names = named.unwrap_or_default().into_iter();
    names.filter_map(|one| one.name).collect()
}

#[cfg(test)]
mod tests {
    use io_autotune_model::Measure;

    use super::*;

    /// A catalogue file that can be read can be rendered, and one that is refused is refused by its
    /// line.
    ///
    /// Attack (parsers): A file of an admin's.
    #[test]
    fn fuzz_catalogue() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerators.d");
        let mut paths: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let shipped = paths.iter().map(|path| std::fs::read(path).unwrap());
        let samples: Vec<_> = shipped.chain([COMPOSITE.as_bytes().to_vec()]).collect();
        io_autotune_fuzzing::Target::new("catalogue", &samples)
            .rounds(1500)
            .run(|input| {
                let Ok(text) = str::from_utf8(input) else {
                    return;
                };
                match Accelerator::parse(text) {
                    Ok(accelerator) => {
                        assert!(is_plain_name(&accelerator.name));
                        for one in [Some(&accelerator), accelerator.at_risk.as_deref()] {
                            let Some(one) = one else { continue };
                            one.render(&one.space.default()).unwrap();
                        }
                    }
                    Err(error) => assert!(error.to_string().contains("line"), "{error}"),
                }
            });
    }

    /// A file with what no shipped one has.
    const COMPOSITE: &str = r#"
name = "composite"
title = "x"
[[parameters]]
name = "layout"
kind = "categories"
values = ["plain", "joined"]
default = "plain"
[[parameters]]
name = "depth"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[risks]]
parameter = "layout"
values = ["joined"]
why = "It writes another layout."
[[delivery.environment]]
variable = "HINTS"
prefix = "*:"
parts = ["depth={depth}", "layout={layout}"]
separator = ":"
suffix = "}"
[[delivery.files]]
name = "hints"
variable = "HINTS_FILE"
head = "{"
tail = "}"
separator = ","
line = "\"{name}\": {value}"
parameters = ["depth"]
"#;

    const SMALL: &str = r#"
name = "small"
title = "A small accelerator"
[[parameters]]
name = "threads"
kind = "integer"
min = 1
max = 8
default = 2
[[parameters]]
name = "depth"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.files]]
name = "hints"
variable = "HINTS"
line = "{name} {value}"
parameters = ["threads"]
[[delivery.environment]]
variable = "DEPTH"
value = "{depth}"
"#;

    #[test]
    fn a_small_file_is_read() {
        let accelerator = Accelerator::parse(SMALL).unwrap();
        assert_eq!(accelerator.name, "small");
        assert_eq!(accelerator.space.size(), 24);
        assert_eq!(
            accelerator.ways(),
            [
                "variable DEPTH = {depth}",
                "file hints, named by HINTS: threads"
            ]
        );
    }

    #[test]
    fn a_recipe_names_values_of_the_file_and_fits_what_runs_show() {
        let advised = r#"
[[recipes]]
name = "many-threads"
values = { threads = 8 }
why = "Small calls wait for one another."
source = "the manual, section 3"
when = [{ measure = "asked_read_bytes", per = "read_calls", most = 65536.0 }]
[[recipes]]
name = "deep"
values = { threads = 4, depth = 4 }
why = "Depth hides latency."
source = "the manual, section 4"
"#;
        let accelerator = Accelerator::parse(&format!("{SMALL}{advised}")).unwrap();
        assert_eq!(
            accelerator.recipes_told(),
            [
                "many-threads: threads=8: Small calls wait for one another. (the manual, section 3)",
                "deep: depth=4 threads=4: Depth hides latency. (the manual, section 4)"
            ]
        );
        let names = |measures: &[(Measure, f64)]| -> Vec<String> {
            let moments = measures.iter().map(|(measure, value)| {
                let (count, mean) = (4, value.ln());
                let moments = Moments {
                    count,
                    mean,
                    m2: 0.0,
                };
                (measure.as_str().to_owned(), moments)
            });
            let fitting = accelerator.recipes_for(&moments.collect());
            fitting.into_iter().map(|one| one.name).collect()
        };
        let read = |bytes| [(Measure::AskedRead, bytes), (Measure::ReadCalls, 1000.0)];
        assert_eq!(names(&read(4096e3)), ["many-threads", "deep"]);
        assert_eq!(names(&read(1e9)), ["deep"], "of a megabyte each");
        assert_eq!(
            names(&[(Measure::AskedRead, 1.0)]),
            ["deep"],
            "calls are not known"
        );
        for (from, to, expected) in [
            (
                "threads = 8 ",
                "threads = 9 ",
                "must be an integer from 1 to 8",
            ),
            ("threads = 8 ", "threads = 2 ", "these are the defaults"),
            ("threads = 8 ", "fibres = 8 ", "fibres"),
            ("\"deep\"", "\"many-threads\"", "a name of its own"),
            (
                "\"the manual, section 3\"",
                "\"\"",
                "say where it was published",
            ),
            ("most = 65536.0", "most = -1.0", "numbers of at least 0"),
            (", most = 65536.0", "", "give least, most, or both"),
            ("\"read_calls\"", "\"cals\"", "cals"),
        ] {
            let text = format!("{SMALL}{}", advised.replace(from, to));
            let error = Accelerator::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_value_at_risk_is_searched_only_under_the_name_that_says_so() {
        let risky = r#"
[[parameters]]
name = "write_back"
kind = "categories"
values = ["off", "on"]
default = "off"
[[delivery.environment]]
variable = "WRITE_BACK"
value = "{write_back}"
[[risks]]
parameter = "write_back"
values = ["on"]
why = "Other nodes see what is written only after a while."
[[risks]]
parameter = "depth"
values = [4]
why = "It writes another layout."
"#;
        let accelerator = Accelerator::parse(&format!("{SMALL}{risky}")).unwrap();
        assert_eq!(
            accelerator.space.size(),
            16,
            "depth has two values, and off is no choice"
        );
        assert!(accelerator.risks.is_empty());
        let plain = accelerator.render(&accelerator.space.default()).unwrap();
        let variables = |delivery: &io_autotune_protocol::Delivery| -> Vec<String> {
            let names = delivery.environment.iter();
            names
                .map(|one| format!("{}={}", one.name, one.value))
                .collect()
        };
        assert_eq!(variables(&plain), ["DEPTH=1"]);
        let all = accelerator.at_risk.as_deref().unwrap();
        assert_eq!(all.name, "small@risk");
        assert_eq!(all.space.size(), 48);
        let mut parametrization = all.space.default();
        let mut set = |name: &str, value: &str| {
            let value = all.space.parse_value(name, value).unwrap();
            parametrization.0.insert(name.to_owned(), value);
        };
        set("write_back", "on");
        set("depth", "2");
        assert_eq!(
            variables(&all.render(&parametrization).unwrap()),
            ["DEPTH=2", "WRITE_BACK=on"]
        );
        let taken = all
            .risks
            .iter()
            .filter(|risk| risk.is_taken(&parametrization));
        let taken: Vec<String> = taken.map(ToString::to_string).collect();
        assert_eq!(
            taken,
            ["write_back=on: Other nodes see what is written only after a while."]
        );
        // A recipe with such a value is one of those who asked for it.
        let advised = "[[recipes]]\nname = \"r\"\nvalues = { write_back = \"on\" }\nwhy = \"w\"\nsource = \"s\"\n";
        let accelerator = Accelerator::parse(&format!("{SMALL}{risky}{advised}")).unwrap();
        assert_eq!(accelerator.recipes, []);
        assert_eq!(accelerator.at_risk.unwrap().recipes.len(), 1);
        for (from, to, expected) in [
            (
                "values = [\"on\"]",
                "values = [\"off\"]",
                "off is the default of write_back",
            ),
            (
                "values = [\"on\"]",
                "values = [\"maybe\"]",
                "maybe is no value of write_back",
            ),
            (
                "parameter = \"depth\"",
                "parameter = \"width\"",
                "none of this file",
            ),
            (
                "parameter = \"depth\"",
                "parameter = \"threads\"",
                "make it \"ordered\"",
            ),
        ] {
            let text = format!("{SMALL}{}", risky.replace(from, to));
            let error = Accelerator::parse(&text).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("line"),
                "{error}"
            );
        }
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        for (from, to, line, expected) in [
            (
                "name = \"small\"",
                "name = \"../x\"",
                2,
                "use letters, digits",
            ),
            (
                "name = \"small\"",
                "name = \"small+large\"",
                2,
                "'+' stands between accelerators",
            ),
            ("title =", "titel =", 3, "unknown field `titel`"),
            (
                "variable = \"HINTS\"\n",
                "variable = \"HINTS\"\nempty_shows_use = {}\nhead = \"[x]\"\n",
                19,
                "is never empty",
            ),
            (
                "variable = \"HINTS\"",
                "variable = \"LD_PRELOAD\"",
                17,
                "cannot be given to a job",
            ),
            (
                "variable = \"HINTS\"",
                "variable = \"PATH\"",
                17,
                "cannot be given to a job",
            ),
            (
                "variable = \"HINTS\"",
                "variable = \"DEPTH\"",
                17,
                "is used twice",
            ),
            (
                "name = \"hints\"",
                "name = \"a/b\"",
                16,
                "not a plain file name",
            ),
            ("{value}\"", "x\"", 18, "contains {value}"),
            (
                "parameters = [\"threads\"]",
                "parameters = [\"thread\"]",
                19,
                "is not among",
            ),
            (
                "parameters = [\"threads\"]",
                "parameters = []",
                4,
                "not delivered by anything",
            ),
            (
                "value = \"{depth}\"",
                "value = \"{deep}\"",
                22,
                "is not among",
            ),
            (
                "value = \"{depth}\"",
                "value = \"depth\"",
                22,
                "names no parameter",
            ),
            (
                "value = \"{depth}\"",
                "value = \"{depth\"",
                22,
                "other half",
            ),
            ("default = 2", "default = 9", 9, "default"),
            (
                "kind = \"ordered\"",
                "kind = \"orderd\"",
                12,
                "unknown variant `orderd`",
            ),
            (
                "default = 2",
                "default = 2\nwhen = { parameter = \"mode\", is = [1] }",
                4,
                "parameter threads exists under a condition on \"mode\"",
            ),
            (
                "title =",
                "constraints = [ { left = \"threads\", op = \"<\", right = 2 } ]\ntitle =",
                3,
                "\"threads < 2\" must hold",
            ),
            (
                "title =",
                "constraints = [ { left = \"threads\", op = \"<\" } ]\ntitle =",
                3,
                "a constraint needs left, op and right",
            ),
            (
                "title =",
                "needs = [\"luck\"]\ntitle =",
                3,
                "unknown variant `luck`",
            ),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let AcceleratorError(faults) =
                Accelerator::parse(&SMALL.replacen(from, to, 1)).unwrap_err();
            let found = faults.iter().any(|fault| {
                fault.line == line && fault.problem.contains(expected) && fault.column >= 1
            });
            assert!(found, "{to}: {faults:?}");
        }
    }

    #[test]
    fn what_is_wrong_in_one_part_hides_nothing_of_another() {
        let text = SMALL
            .replace(
                "title =",
                "constraints = [{ left = \"thread\", op = \"<\", right = 2 }]\ntitel =",
            )
            .replace("parameters = [\"threads\"]", "parameters = []");
        let AcceleratorError(faults) = Accelerator::parse(&text).unwrap_err();
        let told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.line, &fault.problem))
            .collect();
        let expected = [
            (3, "thread"),
            (4, "did you mean `title`?"),
            (5, "not delivered"),
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for ((line, problem), (at, words)) in told.into_iter().zip(expected) {
            assert_eq!(line, at, "{problem}");
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let text = SMALL
            .replace("\"HINTS\"", "\"PATH\"")
            .replace("{depth}", "{deep}");
        let AcceleratorError(faults) = Accelerator::parse(&text).unwrap_err();
        let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [10, 17, 22], "{faults:?}");
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else_that_is_wrong() {
        let text = SMALL
            .replace("title =", "titel =")
            .replace("max = 8", "mxa = 8")
            .replace("default = 1", "default = 3")
            .replace("\"HINTS\"", "\"PATH\"")
            .replace("value = \"{depth}\"", "value = \"{deep}\"\nvaule = 1");
        let text = text.replace(
            "name = \"small\"",
            "title = \"A small one\"\nname = \"sm all\"",
        );
        let AcceleratorError(faults) = Accelerator::parse(&text).unwrap_err();
        let places: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        // The missing `max` is no mistake of its own.
        assert_eq!(places, [3, 4, 9, 15, 18, 23, 24], "{faults:#?}");
        assert!(
            faults[1].problem.ends_with("did you mean `title`?"),
            "{faults:#?}"
        );
        assert!(
            faults[2].problem.ends_with("did you mean `max`?"),
            "{faults:#?}"
        );
    }

    #[test]
    fn a_misspelt_text_is_one_mistake_and_hides_none_of_what_is_delivered() {
        let text = SMALL
            .replace("title =", "titel =")
            .replacen("name =", "nmae =", 1)
            .replace("\"HINTS\"", "\"PATH\"");
        let AcceleratorError(faults) = Accelerator::parse(&text).unwrap_err();
        let places: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(places, [2, 3, 17], "{faults:#?}");
    }

    #[test]
    fn each_parameter_and_each_constraint_is_checked() {
        let text = SMALL.replacen(
            "title =",
            "constraints = [ { left = \"threads\", op = \"<\", right = 2 },\n { left = \"threads\", op = \"<=\", right = 8 },\n \
             { left = \"depth\", op = \">\", right = 1 } ]\ntitle =",
            1,
        );
        let lines = |text: &str| -> Vec<usize> {
            let AcceleratorError(faults) = Accelerator::parse(text).unwrap_err();
            faults.iter().map(|fault| fault.line).collect()
        };
        assert_eq!(lines(&text), [3, 5]);
        let twice = text.replace("name = \"depth\"", "name = \"threads\"");
        assert!(lines(&twice).contains(&13), "{:?}", lines(&twice));
    }
}
