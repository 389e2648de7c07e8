use io_autotune_model::{Parametrization, SpaceError};
use io_autotune_protocol::{
    DeliveredCommand, DeliveredDirective, DeliveredFile, DeliveredOnline, DeliveredSetting,
    DeliveredVariable, Delivery,
};

use crate::delivery::{Deliveries, FileDelivery};
use crate::{Accelerator, Part, Template};

impl Accelerator {
    /// The delivery of `parametrization` to a job, without lines of inactive parameters, empty
    /// files and variables that name an inactive parameter. Returns an error if it is not a point
    /// of the space.
    pub fn render(&self, parametrization: &Parametrization) -> Result<Delivery, SpaceError> {
        self.space.validate(parametrization)?;
        let mut delivery = self.render_nothing();
        for part in &self.parts {
            part.render(&part.own(parametrization), &mut delivery);
        }
        Ok(delivery)
    }

    /// [Rendered](Self::render), but if that is nothing, with [empty
    /// files](crate::delivery::EmptyFile), which show whether a job uses the accelerator. There are
    /// none if it has other ways to a job as well.
    pub fn render_signs(&self, parametrization: &Parametrization) -> Result<Delivery, SpaceError> {
        let mut delivery = self.render(parametrization)?;
        let mut ways = self.parts.iter().map(|part| &part.deliveries);
        if delivery.is_empty() && ways.all(Deliveries::are_shown_by_files) {
            let files = self.parts.iter().flat_map(|part| &part.deliveries.files);
            delivery.files = files.map(|file| delivered(file, String::new())).collect();
        }
        Ok(delivery)
    }

    /// An empty delivery, which still watches the user's own settings.
    #[must_use]
    pub fn render_nothing(&self) -> Delivery {
        Delivery {
            watch: self
                .parts
                .iter()
                .flat_map(|part| part.deliveries.variables())
                .cloned()
                .collect(),
            watch_directives: self.directives().cloned().collect(),
            ..Delivery::default()
        }
    }

    /// Returns true if some of its parameters reach a job by directives of its burst buffer.
    #[must_use]
    pub fn delivers_directives(&self) -> bool {
        self.directives().next().is_some()
    }

    fn directives(&self) -> impl Iterator<Item = &String> {
        let parts = self.parts.iter();
        let directives = parts.flat_map(|part| &part.deliveries.directives);
        directives.map(|directive| directive.name.get_ref())
    }
}

fn delivered(file: &FileDelivery, content: String) -> DeliveredFile {
    let empty = file.empty_shows_use.as_ref();
    let instead = empty.and_then(|empty| empty.unless_exists.as_ref());
    DeliveredFile {
        name: file.name.get_ref().clone(),
        variable: file.variable.get_ref().clone(),
        unless_exists: instead
            .filter(|_| content.is_empty())
            .map(|path| path.get_ref().clone()),
        content,
    }
}

impl Part {
    pub(crate) fn render(&self, parametrization: &Parametrization, delivery: &mut Delivery) {
        if let Some(read_back) = &self.read_back {
            delivery
                .read_back
                .extend(read_back.of(self, parametrization));
        }
        let rendered = |template: &Template, omit_default: bool| {
            let mut named = template.parameters();
            let mut at_default = || {
                named.all(|name| {
                    let value = parametrization.0.get(name);
                    value.is_none_or(|value| self.is_default(name, value))
                })
            };
            (!(omit_default && at_default())).then(|| template.render(parametrization))?
        };
        for entry in &self.deliveries.environment {
            let value = match &entry.value {
                Some(value) => rendered(value.get_ref(), entry.omit_default),
                None => {
                    let parts = entry.parts.iter();
                    let parts: Vec<String> = parts
                        .filter_map(|part| rendered(part.get_ref(), true))
                        .collect();
                    (!parts.is_empty()).then(|| entry.put_together(&parts))
                }
            };
            if let Some(value) = value {
                delivery.environment.push(DeliveredVariable {
                    name: entry.variable.get_ref().clone(),
                    value,
                });
            }
        }
        for setting in &self.deliveries.settings {
            if let Some(value) = rendered(setting.value.get_ref(), setting.omit_default) {
                delivery.settings.push(DeliveredSetting {
                    kind: setting.kind,
                    name: setting.name.get_ref().clone(),
                    value,
                });
            }
        }
        // With the default the command is not run: the job has what it would have without the
        // tuner.
        if let Some(command) = &self.deliveries.command
            && *parametrization != self.space.default()
        {
            let given = command.environment.iter().filter_map(|entry| {
                Some(DeliveredVariable {
                    name: entry.variable.get_ref().clone(),
                    value: rendered(entry.value.get_ref(), false)?,
                })
            });
            delivery.command = Some(DeliveredCommand {
                name: command.name.get_ref().clone(),
                environment: given.collect(),
                provides: command
                    .provides
                    .iter()
                    .map(|name| name.get_ref().clone())
                    .collect(),
            });
        }
        // In the same way nothing is written for the default.
        if *parametrization != self.space.default() {
            for directive in &self.deliveries.directives {
                if let Some(value) = rendered(directive.value.get_ref(), false) {
                    delivery.directives.push(DeliveredDirective {
                        name: directive.name.get_ref().clone(),
                        value,
                    });
                }
            }
        }
        if let Some(online) = &self.deliveries.online
            && let Some(name) = online.policy.get_ref().render(parametrization)
            && let Ok(policy) = name.parse()
        {
            let levers = online.levers.get_ref().clone();
            delivery.online = Some(DeliveredOnline { policy, levers });
        }
        for file in &self.deliveries.files {
            let lines: Vec<String> = file
                .parameters
                .iter()
                .map(|name| name.get_ref().as_str())
                .filter_map(|name| parametrization.0.get(name).map(|value| (name, value)))
                .filter(|(name, value)| !(file.omit_default && self.is_default(name, value)))
                .map(|(name, value)| {
                    let line = file.line.get_ref().replace("{name}", name);
                    line.replace("{value}", &value.to_string())
                })
                .collect();
            if !lines.is_empty() {
                delivery.files.push(delivered(file, file.content(&lines)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_model::Value;
    use io_autotune_protocol::OnlinePolicy;

    use super::*;

    fn accelerator() -> Accelerator {
        Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            [[parameters]]
            name = "sieve"
            kind = "categories"
            values = ["automatic", "enable"]
            default = "automatic"
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            omit_default = true
            parameters = ["sieve", "size"]
            "#,
        )
        .unwrap()
    }

    #[test]
    fn the_default_renders_nothing() {
        let accelerator = accelerator();
        let delivery = accelerator.render(&accelerator.space.default()).unwrap();
        assert_eq!(delivery, accelerator.render_nothing());
        assert_eq!(delivery.watch, ["HINTS"]);
    }

    #[test]
    fn an_empty_file_shows_whether_an_accelerator_is_used_that_is_given_files_alone() {
        let signs = |text: &str| {
            let accelerator = Accelerator::parse(text).unwrap();
            accelerator
                .render_signs(&accelerator.space.default())
                .unwrap()
        };
        let text = |more: &str| {
            format!(
                r#"
                name = "x"
                title = "x"
                [[parameters]]
                name = "size"
                kind = "ordered"
                values = [1, 2, 4]
                default = 2
                [[delivery.files]]
                name = "hints"
                variable = "HINTS"
                line = "{{name}} {{value}}"
                omit_default = true
                parameters = ["size"]
                {more}
                "#
            )
        };
        assert!(signs(&text("")).files.is_empty(), "it may mean something");
        let empty = r#"empty_shows_use = { unless_exists = "/etc/hints" }"#;
        let delivery = signs(&text(empty));
        assert!(delivery.is_empty(), "it is the default's: {delivery:?}");
        let [file] = &delivery.files[..] else {
            panic!("{delivery:?}")
        };
        assert!(file.is_sign());
        assert_eq!(
            (&*file.variable, file.unless_exists.as_deref()),
            ("HINTS", Some("/etc/hints"))
        );
        let accelerator = Accelerator::parse(&text(empty)).unwrap();
        let mut tuned = accelerator.space.default();
        tuned.0.insert("size".into(), Value::Integer(4));
        let tuned = accelerator.render_signs(&tuned).unwrap();
        assert_eq!(
            tuned.files[0].unless_exists, None,
            "values are given anyway"
        );
        let beside = format!(
            "{empty}\n[[delivery.environment]]\nvariable = \"SIZE\"\nvalue = \"{{size}}\"\nomit_default = true"
        );
        assert!(signs(&text(&beside)).files.is_empty(), "another way too");
        for path in ["etc/hints", "/etc/../hints", "/", ""] {
            let wrong = text(empty).replace("/etc/hints", path);
            let error = Accelerator::parse(&wrong).unwrap_err().to_string();
            assert!(error.contains("no plain path"), "{path}: {error}");
        }
    }

    #[test]
    fn only_what_differs_from_the_default_is_written() {
        let accelerator = accelerator();
        let mut parametrization = accelerator.space.default();
        parametrization.0.insert("size".into(), Value::Integer(4));
        let delivery = accelerator.render(&parametrization).unwrap();
        assert_eq!(delivery.files[0].content, "size 4\n");
    }

    /// An accelerator with two parameters, which its deliveries carry.
    fn two(delivery: &str) -> Result<Accelerator, String> {
        let text = format!(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "cb_nodes"
            kind = "ordered"
            values = ["automatic", 1, 4]
            default = "automatic"
            [[parameters]]
            name = "cb_read"
            kind = "categories"
            values = ["automatic", "enable"]
            default = "automatic"
            {delivery}
            "#
        );
        Accelerator::parse(&text).map_err(|error| error.to_string())
    }

    /// What a job is given with none, one and both of the parameters changed.
    fn given(delivery: &str) -> [Delivery; 3] {
        let accelerator = two(delivery).unwrap();
        let nodes = ("cb_nodes".to_owned(), Value::Integer(4));
        let read = ("cb_read".to_owned(), Value::from("enable"));
        [vec![], vec![read.clone()], vec![nodes, read]].map(|values| {
            let mut point = accelerator.space.default();
            point.0.extend(values);
            accelerator.render(&point).unwrap()
        })
    }

    #[test]
    fn a_variable_is_put_together_from_parts_without_those_at_their_default() {
        let variable = |text: &str| {
            given(text).map(|delivery| Some(delivery.environment.first()?.value.clone()))
        };
        let cray = r#"
            [[delivery.environment]]
            variable = "MPICH_MPIIO_HINTS"
            prefix = "*:"
            separator = ":"
            parts = ["cb_nodes={cb_nodes}", "romio_cb_read={cb_read}"]
        "#;
        assert_eq!(
            variable(cray),
            [
                None,
                Some("*:romio_cb_read=enable".to_owned()),
                Some("*:cb_nodes=4:romio_cb_read=enable".to_owned()),
            ]
        );
        let pnetcdf = r#"
            [[delivery.environment]]
            variable = "PNETCDF_HINTS"
            separator = ";"
            parts = ["cb_nodes={cb_nodes}", "romio_cb_read={cb_read}"]
        "#;
        let [_, _, both] = variable(pnetcdf);
        assert_eq!(both.unwrap(), "cb_nodes=4;romio_cb_read=enable");
        let json = r#"
            [[delivery.environment]]
            variable = "FSSPEC_S3"
            prefix = "{"
            separator = ", "
            suffix = "}"
            parts = ['"nodes": {cb_nodes}', '"config": {{"read": "{cb_read}"}}']
        "#;
        assert_eq!(
            variable(json),
            [
                None,
                Some(r#"{"config": {"read": "enable"}}"#.to_owned()),
                Some(r#"{"nodes": 4, "config": {"read": "enable"}}"#.to_owned()),
            ]
        );
        let ways = two(json).unwrap().ways().join("\n");
        assert!(
            ways.contains(r#"FSSPEC_S3 = {"nodes": {cb_nodes}, "#),
            "{ways}"
        );
    }

    #[test]
    fn a_file_has_its_head_and_its_tail_only_with_something_between_them() {
        let file = |text: &str| {
            let file = format!(
                r#"
                [[delivery.files]]
                name = "hints"
                variable = "HINTS"
                omit_default = true
                parameters = ["cb_nodes", "cb_read"]
                {text}
                "#
            );
            given(&file).map(|delivery| Some(delivery.files.first()?.content.clone()))
        };
        let json = r#"
            head = "{"
            line = '  "{name}": "{value}"'
            separator = ","
            tail = "}"
        "#;
        let [none, one, both] = file(json);
        assert_eq!(none, None);
        assert_eq!(one.unwrap(), "{\n  \"cb_read\": \"enable\"\n}\n");
        assert_eq!(
            both.unwrap(),
            "{\n  \"cb_nodes\": \"4\",\n  \"cb_read\": \"enable\"\n}\n"
        );
        let xml = r#"
            head = """<?xml version="1.0"?>
<adios-config>"""
            line = '  <parameter key="{name}" value="{value}"/>'
            tail = "</adios-config>"
        "#;
        let [_, _, both] = file(xml);
        assert_eq!(
            both.unwrap(),
            "<?xml version=\"1.0\"?>\n<adios-config>\n  <parameter key=\"cb_nodes\" value=\"4\"/>\n  \
             <parameter key=\"cb_read\" value=\"enable\"/>\n</adios-config>\n"
        );
        let [_, one, _] = file("head = \"[default]\"\nline = \"{name} = {value}\"");
        assert_eq!(one.unwrap(), "[default]\ncb_read = enable\n");
    }

    #[test]
    fn a_variable_is_one_value_or_parts_and_a_text_is_one_that_a_job_can_have() {
        for (text, problem) in [
            ("", "needs a value, or parts"),
            (
                "value = \"{cb_nodes}{cb_read}\"\nprefix = \"*\"",
                "needs a value, or parts",
            ),
            (
                "value = \"{cb_nodes}\"\nparts = [\"{cb_read}\"]",
                "needs a value, or parts",
            ),
            (
                "parts = [\"{cb_nodes}\", \"{cb_reed}\"]",
                "\"cb_reed\" is not among",
            ),
            ("parts = [\"{cb_nodes}\", \"plain\"]", "names no parameter"),
            (
                "parts = [\"{cb_nodes}\", \"{cb_read}\"]\nseparator = \"a\\nb\"",
                "no text for a job",
            ),
        ] {
            let error = two(&format!(
                "[[delivery.environment]]\nvariable = \"HINTS\"\n{text}"
            ));
            let error = error.unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let long = "x".repeat(1025);
        for text in [
            format!("head = \"{long}\""),
            "tail = \"\\u001b\"".to_owned(),
        ] {
            let file = format!(
                "[[delivery.files]]\nname = \"h\"\nvariable = \"H\"\nline = \"{{value}}\"\nparameters = [\"cb_nodes\", \"cb_read\"]\n{text}"
            );
            let error = two(&file).unwrap_err();
            assert!(error.contains("no text for a job"), "{error}");
        }
    }

    #[test]
    fn what_is_read_back_says_what_was_asked_for() {
        let text = r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            [[delivery.environment]]
            variable = "X_SIZE"
            value = "{size}"
            omit_default = true
            [read_back]
            by = "mpi-in-force"
            names = { size = "x_size" }
            at_most = ["size"]
        "#;
        let accelerator = Accelerator::parse(text).unwrap();
        let mut parametrization = accelerator.space.default();
        let asked = |parametrization: &Parametrization| -> Option<String> {
            let delivery = accelerator.render(parametrization).unwrap();
            let [read_back] = delivery.read_back.as_slice() else {
                panic!("{delivery:?}")
            };
            assert_eq!(read_back.name, "x_size");
            assert!(read_back.at_most);
            read_back.asked.clone()
        };
        assert_eq!(asked(&parametrization), None, "the default is not given");
        parametrization.0.insert("size".into(), Value::Integer(4));
        assert_eq!(asked(&parametrization).as_deref(), Some("4"));
        let unknown = text.replace("{ size =", "{ sise =");
        let error = Accelerator::parse(&unknown).unwrap_err().to_string();
        assert!(error.contains("\"sise\" is not among"), "{error}");
    }

    #[test]
    fn who_tunes_inside_the_job_is_a_parameter_like_others() {
        let text = r#"
            name = "x"
            title = "x"
            needs = ["exclusive", "root"]
            [[parameters]]
            name = "online"
            kind = "categories"
            values = ["off", "iopathtune", "settling"]
            default = "off"
            [delivery.online]
            policy = "{online}"
            levers = [{ kind = "block", name = "nr_requests" }]
        "#;
        let accelerator = Accelerator::parse(text).unwrap();
        let mut parametrization = accelerator.space.default();
        let nothing = accelerator.render(&parametrization).unwrap();
        assert_eq!(nothing, accelerator.render_nothing());
        parametrization
            .0
            .insert("online".into(), Value::from("settling"));
        let online = accelerator
            .render(&parametrization)
            .unwrap()
            .online
            .unwrap();
        assert_eq!(online.policy, OnlinePolicy::Settling);
        assert_eq!(online.levers[0].name, "nr_requests");
        for (from, to, expected) in [
            (
                "default = \"off\"",
                "default = \"settling\"",
                "with the default off",
            ),
            ("\"settling\"]", "\"best\"]", "with the default off"),
            ("\"{online}\"", "\"my {online}\"", "must be one parameter"),
            ("\"block\"", "\"sysctl\"", "of one kind"),
            (
                "[{ kind",
                "[{ kind = \"lctl\", name = \"a\" }, { kind",
                "of one kind",
            ),
            ("name = \"nr_requests\"", "name = \"../x\"", "of one kind"),
            ("needs = [\"exclusive\", \"root\"]", "", "is missing"),
        ] {
            let error = Accelerator::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(expected), "{from}: {error}");
        }
    }

    #[test]
    fn a_foreign_parametrization_is_refused() {
        let mut parametrization = accelerator().space.default();
        parametrization.0.insert("size".into(), Value::Integer(3));
        assert!(accelerator().render(&parametrization).is_err());
    }

    #[test]
    fn a_variable_is_set_where_it_says_something() {
        let accelerator = Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "mode"
            kind = "categories"
            values = ["plain", "deep"]
            default = "plain"
            [[parameters]]
            name = "depth"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            when = { parameter = "mode", is = ["deep"] }
            [[delivery.environment]]
            variable = "X_MODE"
            value = "{mode}"
            omit_default = true
            [[delivery.environment]]
            variable = "X_DEPTH"
            value = "{mode}:{depth}K"
            "#,
        )
        .unwrap();
        let rendered = |values: &[(&str, Value)]| {
            let own = values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()));
            let parametrization = accelerator.space.complete(&own.collect()).unwrap();
            let delivery = accelerator.render(&parametrization).unwrap();
            let pairs = delivery.environment.into_iter();
            pairs
                .map(|v| format!("{}={}", v.name, v.value))
                .collect::<Vec<_>>()
        };
        assert!(rendered(&[]).is_empty());
        let deep = ("mode", Value::from("deep"));
        assert_eq!(
            rendered(&[deep, ("depth", Value::Integer(4))]),
            ["X_MODE=deep", "X_DEPTH=deep:4K"]
        );
        assert_eq!(accelerator.render_nothing().watch, ["X_MODE", "X_DEPTH"]);
    }

    #[test]
    fn a_parameter_that_does_not_exist_has_no_line() {
        let accelerator = Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            constraints = [{ forbid = { cache = ["on"], size = [4] } }]
            [[parameters]]
            name = "cache"
            kind = "categories"
            values = ["off", "on"]
            default = "off"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            when = { parameter = "cache", is = ["on"] }
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            parameters = ["cache", "size"]
            "#,
        )
        .unwrap();
        let rendered = |values: &[(&str, Value)]| {
            let values = values.iter().cloned();
            let values = values.map(|(name, value)| (name.to_owned(), value));
            let parametrization = accelerator.space.complete(&values.collect())?;
            let delivery = accelerator.render(&parametrization)?;
            Ok::<_, SpaceError>(delivery.files[0].content.clone())
        };
        let on = ("cache", Value::from("on"));
        assert_eq!(rendered(&[]).unwrap(), "cache off\n");
        assert_eq!(
            rendered(std::slice::from_ref(&on)).unwrap(),
            "cache on\nsize 2\n"
        );
        let size = ("size", Value::Integer(1));
        assert_eq!(
            rendered(&[on.clone(), size.clone()]).unwrap(),
            "cache on\nsize 1\n"
        );
        let error = rendered(&[size]).unwrap_err().to_string();
        assert!(error.contains("only where cache is on"), "{error}");
        let error = rendered(&[on, ("size", Value::Integer(4))]).unwrap_err();
        assert!(error.to_string().contains("must hold"), "{error}");
    }
}
