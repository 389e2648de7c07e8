//! Several accelerators tuned together, such as `--io-autotune=romio+page-cache`, composed into
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use io_autotune_model::{Condition, Constraint, Parameter, Space, SpaceError, Value};

use crate::risk::AT_RISK;
use crate::{Accelerator, Part, Risk};

const PLUS: char = '+';

/// The reason why accelerators cannot be tuned together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JointError {
    /// A `+` without a name on either side.
    #[error("{0:?} has nothing before or after a '+': write NAME+NAME")]
    Nothing(String),
    /// One accelerator is named twice.
    #[error("{name:?} names {part} twice: name each accelerator once")]
    Twice {
        /// The name that was asked for.
        name: String,
        /// The accelerator.
        part: String,
    },
    /// Two accelerators would do the same thing, which only one can do.
    #[error("{one} and {other} cannot be tuned together: both {what}; name one of them")]
    Clash {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// The thing that both do, in words.
        what: String,
    },
    /// More parameters than a study can search.
    #[error(
        "{name} has {count} parameters together, and a study takes {max} at the most: name fewer accelerators"
    )]
    TooMany {
        /// The name that was asked for.
        name: String,
        /// The number of their parameters.
        count: usize,
        /// The number that is allowed.
        max: usize,
    },
    /// The parameters do not form a space.
    #[error("{name} cannot be tuned together: {source}")]
    Space {
        /// The name that was asked for.
        name: String,
        /// The problem.
        source: Box<SpaceError>,
    },
}

/// The canonical form of a user's name: the names, sorted, with `+` between them.
#[must_use]
pub fn canonical_name(name: &str) -> String {
    sorted(name).join("+")
}

fn sorted(name: &str) -> Vec<&str> {
    let mut names: Vec<&str> = name.split(PLUS).collect();
    names.sort_unstable();
    names
}

pub(crate) fn named(name: &str) -> Result<Vec<&str>, JointError> {
    let names = sorted(name);
    if names.len() > 1 && names.contains(&"") {
        return Err(JointError::Nothing(name.to_owned()));
    }
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(JointError::Twice {
            name: name.to_owned(),
            part: pair[0].to_owned(),
        }),
        None => Ok(names),
    }
}

/// Composes accelerators, in the order of their names. A parameter becomes `ACCELERATOR.PARAMETER`
/// if another accelerator has a parameter of the same name, or compares a parameter with that word.
pub(crate) fn joint(accelerators: &[Arc<Accelerator>]) -> Result<Accelerator, JointError> {
    let of_all = |say: &dyn Fn(&Accelerator) -> &str, between: &str| {
        let told = accelerators.iter().filter(|one| !say(one).is_empty());
        let told = told.map(|one| format!("{}: {}", one.name, say(one).trim()));
        told.collect::<Vec<_>>().join(between)
    };
    let names: Vec<&str> = accelerators.iter().map(|one| one.name.as_str()).collect();
    let titles: Vec<&str> = accelerators.iter().map(|one| one.title.as_str()).collect();
    let needs: BTreeSet<_> = accelerators.iter().flat_map(|one| &one.needs).collect();
    let tried = accelerators.iter().all(|one| one.tried_on.is_some());
    let name = names.join("+");
    let mut parts: Vec<Part> = accelerators
        .iter()
        .flat_map(|one| one.parts.iter().cloned())
        .collect();
    refuse_clashes(&parts)?;
    rename(&mut parts);
    Ok(Accelerator {
        title: titles.join("; "),
        description: of_all(&|one| &one.description, "\n\n"),
        takes_effect: of_all(&|one| &one.takes_effect, "; "),
        tried_on: tried.then(|| of_all(&|one| one.tried_on.as_deref().unwrap_or_default(), "; ")),
        needs: needs.into_iter().copied().collect(),
        used_if: None,
        space: space(&name, &parts)?,
        // Nobody has published what to begin with for several together.
        recipes: Vec::new(),
        risks: risks(accelerators, &parts),
        at_risk: None,
        parts,
        name,
    })
}

/// The risks of all, by the names that their parameters have together.
fn risks(accelerators: &[Arc<Accelerator>], parts: &[Part]) -> Vec<Risk> {
    let of = |one: &Arc<Accelerator>| {
        let part = parts.iter().find(|part| part.of == one.name);
        let outer = |name: &str| part.map_or(name, |part| part.outer_name(name)).to_owned();
        let risks = one.risks.iter().map(|risk| Risk {
            parameter: outer(&risk.parameter),
            ..risk.clone()
        });
        risks.collect::<Vec<_>>()
    };
    accelerators.iter().flat_map(of).collect()
}

/// The things that only one part of a job can do, in words.
fn alone(part: &Part) -> impl Iterator<Item = String> {
    let deliveries = &part.deliveries;
    let variables = deliveries.variables();
    let variables = variables.map(|name| format!("set the variable {name}"));
    let files = deliveries.files.iter();
    let files = files.map(|file| format!("write the file {}", file.name.get_ref()));
    let settings = deliveries.settings.iter();
    let settings =
        settings.map(|setting| format!("change the {} {}", setting.kind, setting.name.get_ref()));
    // A node has one time budget for starts before a job, and saves the stop of one command.
    let command = deliveries.command.iter();
    let command = command.map(|_| "start a command, of which a job can have one".to_owned());
    let directives = deliveries.directives.iter();
    let directives =
        directives.map(|directive| format!("write the directive {}", directive.name.get_ref()));
    let online = deliveries.online.iter();
    let online = online.map(|_| "tune inside the job, which one can do".to_owned());
    let read = part.read_back.iter().flat_map(|read| read.names.values());
    let read = read.map(|name| format!("are asked for {name} as it is in force"));
    variables
        .chain(files)
        .chain(settings)
        .chain(command)
        .chain(directives)
        .chain(online)
        .chain(read)
}

fn refuse_clashes(parts: &[Part]) -> Result<(), JointError> {
    let mut known = BTreeMap::<String, &str>::new();
    for part in parts {
        let own: BTreeSet<String> = alone(part).collect();
        if let Some(one) = own.iter().find_map(|what| known.get(what)) {
            let of_both = own.iter().filter(|what| known.get(*what) == Some(one));
            return Err(JointError::Clash {
                one: (*one).to_owned(),
                other: part.of.clone(),
                what: of_both.cloned().collect::<Vec<_>>().join(", "),
            });
        }
        known.extend(own.into_iter().map(|what| (what, part.of.as_str())));
    }
    Ok(())
}

/// The words with a meaning in a part: its parameters, and the words that it compares them with.
fn words(part: &Part) -> BTreeSet<String> {
    let parameters = part.space.parameters().iter();
    let parameters = parameters.map(|parameter| parameter.name.clone());
    let compared = part
        .space
        .constraints()
        .iter()
        .filter_map(|constraint| match constraint {
            Constraint::Compare {
                right: Value::Text(word),
                ..
            } => Some(word.clone()),
            _ => None,
        });
    parameters.chain(compared).collect()
}

fn rename(parts: &mut [Part]) {
    let words: Vec<BTreeSet<String>> = parts.iter().map(words).collect();
    for (place, part) in parts.iter_mut().enumerate() {
        let elsewhere = |name: &String| {
            let mut others = words.iter().enumerate();
            others.any(|(other, words)| other != place && words.contains(name))
        };
        let own = part.space.parameters().iter().map(|one| &one.name);
        // An accelerator and the same with its values at risk deliver alike, and are never together.
        let plain = part.of.trim_end_matches(AT_RISK);
        part.renamed = own
            .filter(|name| elsewhere(name))
            .map(|name| (name.clone(), format!("{plain}.{name}")))
            .collect();
    }
}

fn space(name: &str, parts: &[Part]) -> Result<Space, JointError> {
    let parameters: Vec<Parameter> = parts.iter().flat_map(outer_parameters).collect();
    let constraints = parts.iter().flat_map(outer_constraints).collect();
    Space::constrained(parameters, constraints).map_err(|error| {
        let name = name.to_owned();
        match error {
            SpaceError::TooManyParameters { count, max } => {
                JointError::TooMany { name, count, max }
            }
            error => JointError::Space {
                name,
                source: Box::new(error),
            },
        }
    })
}

fn outer_parameters(part: &Part) -> impl Iterator<Item = Parameter> {
    part.space.parameters().iter().map(|own| Parameter {
        name: part.outer_name(&own.name).to_owned(),
        when: own.when.as_ref().map(|condition| Condition {
            parameter: part.outer_name(&condition.parameter).to_owned(),
            is: condition.is.clone(),
        }),
        ..own.clone()
    })
}

fn outer_constraints(part: &Part) -> impl Iterator<Item = Constraint> {
    part.space.constraints().iter().map(|own| match own {
        Constraint::Compare { left, op, right } => Constraint::Compare {
            left: part.outer_name(left).to_owned(),
            op: *op,
            right: match right {
                Value::Text(word) => Value::Text(part.outer_name(word).to_owned()),
                number => number.clone(),
            },
        },
        Constraint::Forbid { forbid } => Constraint::Forbid {
            forbid: forbid
                .iter()
                .map(|(name, values)| (part.outer_name(name).to_owned(), values.clone()))
                .collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use io_autotune_model::{Parametrization, Point};
    use io_autotune_protocol::Delivery;
    use proptest::prelude::*;

    use super::*;
    use crate::{Catalogue, LookupError, Need};

    /// Two accelerators that share names of parameters, which are renamed when they are tuned
    /// together, in conditions and constraints too.
    const CACHE: &str = r#"
name = "cache"
title = "A cache"
takes_effect = "at once"
tried_on = "a stand-in"
needs = ["exclusive", "root"]
constraints = [
    { left = "low", op = "<=", right = "size" },
    { left = "mode", op = "!=", right = "depth" },
    { forbid = { mode = ["deep"], size = [1] } },
]
[[parameters]]
name = "mode"
kind = "categories"
values = ["plain", "deep", "depth"]
default = "plain"
[[parameters]]
name = "size"
kind = "ordered"
values = [1, 2, 4]
default = 2
when = { parameter = "mode", is = ["deep", "depth"] }
[[parameters]]
name = "low"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.files]]
name = "hints"
variable = "CACHE_HINTS"
line = "{name} {value}"
omit_default = true
parameters = ["mode", "size", "low"]
[delivery.command]
name = "cache"
provides = ["CACHE_DIR"]
environment = [{ variable = "SIZE", value = "{size}" }]
[read_back]
by = "mpi-in-force"
names = { size = "cache_size" }
"#;
    const NET: &str = r#"
name = "net"
title = "A network"
description = "It carries."
takes_effect = "at the start"
[[parameters]]
name = "depth"
kind = "integer"
min = 1
max = 9
default = 3
[[parameters]]
name = "size"
kind = "ordered"
values = [16, 32]
default = 16
[[delivery.environment]]
variable = "NET"
value = "{depth}:{size}"
omit_default = true
"#;

    fn catalogue(texts: &[&str]) -> Catalogue {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/accelerators.d");
        let mut catalogue = Catalogue::load(&shipped).unwrap();
        for text in texts {
            assert!(catalogue.add(Arc::new(Accelerator::parse(text).unwrap())));
        }
        catalogue
    }

    fn with(accelerator: &Accelerator, values: &[(&str, Value)]) -> Parametrization {
        let values = values.iter().cloned();
        let values = values.map(|(name, value)| (name.to_owned(), value));
        accelerator.space.complete(&values.collect()).unwrap()
    }

    #[test]
    fn however_it_is_written_it_is_one() {
        assert_eq!(canonical_name("romio+page-cache"), "page-cache+romio");
        assert_eq!(canonical_name("page-cache+romio"), "page-cache+romio");
        assert_eq!(canonical_name("romio"), "romio");
        let catalogue = catalogue(&[]);
        let one = catalogue.find("romio+page-cache").unwrap();
        let other = catalogue.find("page-cache+romio").unwrap();
        assert_eq!(one.name, "page-cache+romio");
        assert_eq!(one.name, other.name);
        assert_eq!(one.space, other.space);
        assert_eq!(one.needs, [Need::Exclusive, Need::Root]);
        let (page_cache, romio) = (catalogue.find("page-cache"), catalogue.find("romio"));
        let single = [page_cache.unwrap(), romio.unwrap()];
        let own = single.iter().flat_map(|one| one.space.parameters());
        assert!(
            one.space.parameters().iter().eq(own),
            "no name is shared, and none changes"
        );
    }

    #[test]
    fn both_are_delivered_and_of_one_at_its_default_nothing() {
        let catalogue = catalogue(&[CACHE]);
        let joint = catalogue.find("romio+page-cache+cache").unwrap();
        assert_eq!(joint.name, "cache+page-cache+romio");
        assert_eq!(
            joint.render_nothing().watch,
            ["CACHE_HINTS", "CACHE_DIR", "ROMIO_HINTS"]
        );
        let expire = ("dirty_expire_centisecs", Value::Integer(6000));
        let both = with(&joint, &[expire, ("cb_nodes", Value::Integer(8))]);
        let delivery = joint.render(&both).unwrap();
        let [file] = &delivery.files[..] else {
            panic!("{delivery:?}")
        };
        assert_eq!(
            (&*file.variable, &*file.content),
            ("ROMIO_HINTS", "cb_nodes 8\n")
        );
        let [setting] = &delivery.settings[..] else {
            panic!("{delivery:?}")
        };
        assert_eq!(setting.name, "vm.dirty_expire_centisecs");
        assert_eq!(setting.value, "6000");
        assert_eq!(
            delivery.command, None,
            "the cache is at its default: nothing is started"
        );
        let started = with(
            &joint,
            &[("low", Value::Integer(2)), ("mode", "deep".into())],
        );
        assert!(joint.render(&started).unwrap().command.is_some());
    }

    #[test]
    fn names_that_are_shared_say_whose_they_are() {
        let catalogue = catalogue(&[CACHE, NET]);
        let joint = catalogue.find("net+cache").unwrap();
        let names: Vec<_> = joint
            .space
            .parameters()
            .iter()
            .map(|one| &*one.name)
            .collect();
        // `depth` is a value that the cache compares with, so it stays a value.
        assert_eq!(
            names,
            ["mode", "cache.size", "low", "net.depth", "net.size"]
        );
        let constraints: Vec<_> = joint
            .space
            .constraints()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            constraints,
            [
                "low <= cache.size",
                "mode != depth",
                "not cache.size=1 with mode=deep"
            ]
        );
        let parametrization = with(
            &joint,
            &[
                ("mode", "deep".into()),
                ("cache.size", Value::Integer(4)),
                ("net.size", Value::Integer(32)),
            ],
        );
        let delivery = joint.render(&parametrization).unwrap();
        assert_eq!(delivery.files[0].content, "mode deep\nsize 4\n");
        assert_eq!(delivery.environment[0].value, "3:32");
        assert_eq!(delivery.read_back[0].parameter, "cache.size");
        assert_eq!(delivery.read_back[0].asked.as_deref(), Some("4"));
        assert_eq!(joint.ways()[2], "net: variable NET = {depth}:{size}");
        assert_eq!(joint.title, "A cache; A network");
        assert_eq!(joint.description, "net: It carries.");
        assert_eq!(joint.takes_effect, "cache: at once; net: at the start");
        assert_eq!(joint.tried_on, None, "one of them was not");
        let alone = catalogue.find("net").unwrap();
        assert_eq!(
            alone.space.parameters()[1].name,
            "size",
            "alone it is as before"
        );
    }

    #[test]
    fn what_cannot_be_tuned_together_is_refused_with_the_reason() {
        let renamed = |text: &str, pairs: &[(&str, &str)]| {
            let mut text = text.replace("name = \"net\"", "name = \"other\"");
            for (from, to) in pairs {
                assert!(text.contains(from), "{from}");
                text = text.replace(from, to);
            }
            text
        };
        let told =
            |texts: &[&str], name: &str| catalogue(texts).find(name).unwrap_err().to_string();
        assert!(told(&[], "romio+romio").contains("names romio twice"));
        for name in ["romio+", "+romio", "romio++page-cache", "+"] {
            assert!(
                told(&[], name).contains("nothing before or after a '+'"),
                "{name}"
            );
        }
        let unknown = told(&[], "romio+page-cash");
        assert!(
            unknown
                .starts_with("there is no accelerator \"page-cash\"; choose one of: block-online,"),
            "{unknown}"
        );
        assert!(matches!(
            catalogue(&[]).find("romio+page-cash"),
            Err(LookupError::Unknown { .. })
        ));
        let many = told(&[], "romio+ompio+block-queue+page-cache");
        assert!(
            many.contains("block-queue+ompio+page-cache+romio has 22 parameters together, and a study takes 20"),
            "{many}"
        );
        let variable = renamed(NET, &[]);
        let mut files = renamed(CACHE, &[("\"cache\"", "\"third\""), ("CACHE_", "THIRD_")]);
        let command = files.clone();
        files = files.replace("[delivery.command]\nname = \"third\"\nprovides = [\"THIRD_DIR\"]\nenvironment = [{ variable = \"SIZE\", value = \"{size}\" }]\n", "");
        let read = files.replace("name = \"hints\"", "name = \"more\"");
        let block = renamed(
            NET,
            &[
                (
                    "[[delivery.environment]]\nvariable = \"NET\"",
                    "[[delivery.settings]]\nkind = \"sysctl\"\nname = \"vm.dirty_bytes\"",
                ),
                ("title =", "needs = [\"root\", \"exclusive\"]\ntitle ="),
            ],
        );
        for (texts, name, expected) in [
            (
                [NET, &variable],
                "net+other",
                "net and other cannot be tuned together: both set the variable NET; name one",
            ),
            (
                [CACHE, &files],
                "cache+third",
                "cache and third cannot be tuned together: both are asked for cache_size as it is in force, write the file hints; name one",
            ),
            (
                [CACHE, &command],
                "cache+third",
                ", start a command, of which a job can have one, write",
            ),
            (
                [CACHE, &read],
                "cache+third",
                "both are asked for cache_size as it is in force; name one",
            ),
            (
                [NET, &block],
                "other+net+page-cache",
                "other and page-cache cannot be tuned together: both change the sysctl vm.dirty_bytes",
            ),
        ] {
            let told = told(&texts, name);
            assert!(told.contains(expected), "{told}");
        }
    }

    fn all_pairs() -> Vec<Arc<Accelerator>> {
        let catalogue = catalogue(&[CACHE, NET]);
        let names: Vec<String> = catalogue.iter().map(|one| one.name.clone()).collect();
        let mut pairs = Vec::new();
        for (place, one) in names.iter().enumerate() {
            for other in &names[place + 1..] {
                match catalogue.find(&format!("{other}+{one}")) {
                    Ok(pair) => pairs.push(pair),
                    Err(LookupError::Together(JointError::Clash { .. })) => {}
                    Err(error) => panic!("{one}, {other}: {error}"),
                }
            }
        }
        assert!(pairs.len() > 40, "{} of all pairs", pairs.len());
        pairs
    }

    #[test]
    fn the_default_of_any_pair_delivers_nothing() {
        for pair in all_pairs() {
            let default = pair.render(&pair.space.default()).unwrap();
            let delivered = Delivery {
                read_back: Vec::new(),
                ..default
            };
            assert_eq!(delivered, pair.render_nothing(), "{}", pair.name);
        }
    }

    proptest! {
        /// Users write the name, and root's prologs look it up.
        #[test]
        fn any_text_has_one_name_or_a_reason(name in "[+a-cé ]{0,12}|(a|b|scr|romio|page-cache|\\+){0,8}") {
            let one = canonical_name(&name);
            prop_assert_eq!(canonical_name(&one), one.clone());
            match catalogue(&[]).find(&name) {
                Ok(found) => prop_assert_eq!(&found.name, &one),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
            prop_assert_eq!(catalogue(&[]).find(&one).is_ok(), catalogue(&[]).find(&name).is_ok());
        }

        /// A joint space admits a parametrization if each part's space admits its values, and
        /// delivers it as each part would alone.
        #[test]
        fn a_parametrization_falls_into_one_of_each(draws in prop::collection::vec(any::<u32>(), 20)) {
            for pair in all_pairs() {
                let levels = pair.space.parameters().iter().zip(&draws);
                let levels = levels.map(|(one, draw)| draw % u32::try_from(one.levels()).unwrap());
                let point = pair.space.canonical(Point(levels.collect()));
                let all = pair.space.parametrization(&point);
                let own: Vec<_> = pair.parts.iter().map(|part| (part, part.own(&all))).collect();
                let valid = own.iter().all(|(part, own)| part.space.validate(own).is_ok());
                prop_assert_eq!(pair.space.admits(&point), valid, "{}: {}", pair.name, all);
                if !valid {
                    continue;
                }
                prop_assert_eq!(own.iter().map(|(_, own)| own.0.len()).sum::<usize>(), all.0.len());
                let delivery = pair.render(&all).unwrap();
                let mut alone = Delivery::default();
                for (part, own) in own {
                    part.render(&own, &mut alone);
                }
                alone.watch = pair.render_nothing().watch;
                alone.watch_directives = pair.render_nothing().watch_directives;
                prop_assert_eq!(delivery, alone);
            }
        }
    }
}
