//! The SPANK plugin as this host's Slurm would load it: the file that plugstack.conf names, and the
//! series of Slurm that it was built for. Slurm's loader takes no other (`src/common/plugstack.c`).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use io_autotune_protocol::{
    Check, PluginLine, PluginOnNodes, plugin_line, plugstack_conf, slurm_conf,
};
use object::{Object, ObjectSection, ObjectSymbol};

const NAME: &str = "plugin";
/// The symbol with the version that a plugin was built for: Slurm's SLURM_VERSION_NUMBER
/// (`slurm/spank.h`).
const SYMBOL: &str = "plugin_version";

/// The least consequence of a plugin that is not loaded.
const COSTS: &str = "jobs run untuned, and sbatch refuses --io-autotune";

/// The most nodes that are named.
const NAMED: usize = 5;

/// The checks of the plugin; none on a host without Slurm. `on_nodes` has the arguments that nodes
/// have reported.
pub(super) fn checks(on_nodes: &[PluginOnNodes]) -> Vec<Check> {
    let Some(conf) = slurm_conf() else {
        return Vec::new();
    };
    let Some(here) = asked("sinfo", &["--version"]).and_then(|shown| series_of_text(&shown)) else {
        return Vec::new();
    };
    let plugstack = plugstack_conf(&conf);
    let line = plugin_line(&plugstack);
    let mut checks = vec![judge(&plugstack, line.as_ref(), here)];
    if let Some(line) = line.filter(|line| !line.is_stub()) {
        checks.extend(against_nodes(&line, on_nodes));
        let running = asked("sinfo", &["--noheader", "--Node", "--format=%N %v"]);
        checks.extend(running.and_then(|shown| running_series(&shown, here)));
    }
    checks
}

fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(text)
}

/// The major and minor number of a version, such as 24 and 11.
type Series = (u32, u32);

fn judge(plugstack: &Path, line: Option<&PluginLine>, here: Series) -> Check {
    let Some(line) = line else {
        return Check::ok(
            NAME,
            format!("{} has no line for it on this host", plugstack.display()),
        );
    };
    let (path, shown) = (&line.path, line.path.display());
    if path.is_relative() {
        return Check::ok(NAME, format!("{shown}, in Slurm's PluginDir"));
    }
    if line.is_stub() {
        return Check::ok(NAME, "the stub: --io-autotune is taken and ignored");
    }
    let install = format!(
        "install the plugin, or correct the path in {}",
        line.found_in.display()
    );
    match fs::read(path).map(|data| built_for(&data)) {
        Err(error) => Check::failed(NAME, format!("{shown}: {error}: {COSTS}"), install),
        Ok(None) => Check::failed(
            NAME,
            format!("{shown} is no plugin of Slurm: {COSTS}"),
            install,
        ),
        Ok(Some((major, minor))) if (major, minor) != here => Check::failed(
            NAME,
            format!(
                "{shown} was built for Slurm {major}.{minor:02}, and this host has {}.{:02}: {COSTS}",
                here.0, here.1
            ),
            "build it against this Slurm's headers: `make -C spank-plugin`",
        ),
        Ok(Some((major, minor))) if line.required => Check::warning(
            NAME,
            format!(
                "{shown} for Slurm {major}.{minor:02} is `required` in {}",
                line.found_in.display()
            ),
            "write `optional` there, so that no mistake of it stops a job",
        ),
        Ok(Some((major, minor))) => {
            Check::ok(NAME, format!("{shown} for Slurm {major}.{minor:02}"))
        }
    }
}

/// Checks that nodes have the same arguments as this host; `None` if no node has reported its own.
fn against_nodes(line: &PluginLine, on_nodes: &[PluginOnNodes]) -> Option<Check> {
    const NAME: &str = "plugin here and on nodes";
    let others = on_nodes.iter();
    let others = others.filter(|plugin| plugin.arguments != line.arguments);
    let others: Vec<&PluginOnNodes> = others.collect();
    let Some(other) = others.first() else {
        let same = |_| Check::ok(NAME, "the same arguments");
        return on_nodes.first().map(same);
    };
    let differing = |one: &[String], other: &[String]| {
        let only = one.iter().filter(|argument| !other.contains(argument));
        match Vec::from_iter(only.map(String::as_str)).join(" ") {
            none if none.is_empty() => "nothing more".to_owned(),
            only => only,
        }
    };
    // Each endpoint reports the nodes that it knows.
    let nodes = others.iter().flat_map(|plugin| &plugin.nodes);
    let nodes: BTreeSet<&str> = nodes.map(String::as_str).collect();
    let nodes: Vec<&str> = nodes.into_iter().collect();
    let shown = nodes.len().min(NAMED);
    Some(Check::failed(
        NAME,
        format!(
            "{} here has {}; {}, of {} that differ, has {}",
            line.found_in.display(),
            differing(&line.arguments, &other.arguments),
            nodes[..shown].join(", "),
            nodes.len(),
            differing(&other.arguments, &line.arguments),
        ),
        "write the same line in plugstack.conf on all hosts, then run a job on these nodes",
    ))
}

/// Checks that slurmd runs this series on each node that `sinfo` lists as `NODE VERSION`.
fn running_series(shown: &str, here: Series) -> Option<Check> {
    const NAME: &str = "Slurm on nodes";
    let rows = shown.lines().filter_map(|line| line.split_once(' '));
    let known: Vec<(&str, &str, Series)> = rows
        .filter_map(|(node, version)| Some((node, version.trim(), series_of_text(version)?)))
        .collect();
    let (node, version, _) = match known.iter().find(|(_, _, series)| *series != here) {
        Some(other) => other,
        None if known.is_empty() => return None,
        None => {
            let detail = format!("slurmd is {}.{:02} as here", here.0, here.1);
            return Some(Check::ok(NAME, detail));
        }
    };
    Some(Check::warning(
        NAME,
        format!(
            "slurmd of {node} is {version}, and this host has {}.{:02}",
            here.0, here.1
        ),
        "each host needs a plugin that was built for its own series; run `io-autotune doctor` on that node",
    ))
}

fn built_for(data: &[u8]) -> Option<Series> {
    let file = object::File::parse(data).ok()?;
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(SYMBOL))?;
    let bytes = file
        .sections()
        .find_map(|section| section.data_range(symbol.address(), 4).ok().flatten())?;
    let version = u32::from_ne_bytes(bytes.try_into().ok()?);
    Some((version >> 16, version >> 8 & 0xff))
}

/// The series in `slurm 24.11.5` or `slurm-wlm 22.05.8`.
fn series_of_text(shown: &str) -> Option<Series> {
    let mut numbers = shown.split_whitespace().last()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    fn line(path: &Path, arguments: &[&str]) -> PluginLine {
        PluginLine {
            required: false,
            path: path.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            found_in: "/etc/slurm/plugstack.conf".into(),
        }
    }

    #[test]
    fn nodes_with_other_arguments_are_named() {
        let here = line(Path::new("/x/io_autotune.so"), &["a=1", "default=off"]);
        let on = |nodes: &[&str], arguments: &[&str]| PluginOnNodes {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            nodes: nodes.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(against_nodes(&here, &[]), None);
        let same = on(&["n1"], &["a=1", "default=off"]);
        let check = against_nodes(&here, std::slice::from_ref(&same)).unwrap();
        assert_eq!(check.state, CheckState::Ok);
        let other = on(&["n2", "n3"], &["a=2", "default=off"]);
        let check = against_nodes(&here, &[same, other.clone(), other]).unwrap();
        assert_eq!(
            check.detail,
            "/etc/slurm/plugstack.conf here has a=1; n2, n3, of 2 that differ, has a=2"
        );
        assert!(check.fix.unwrap().contains("plugstack.conf on all hosts"));
    }

    #[test]
    fn a_slurmd_of_another_series_is_named() {
        let of = |shown| running_series(shown, (24, 11));
        assert_eq!(of("n1 unknown\n"), None);
        assert_eq!(
            of("n1 24.11.5\nn2 24.11.1\n").unwrap().state,
            CheckState::Ok
        );
        let check = of("n1 24.11.5\nn2 23.02.7\n").unwrap();
        assert_eq!(
            check.detail,
            "slurmd of n2 is 23.02.7, and this host has 24.11"
        );
    }

    #[test]
    fn what_slurm_would_not_load_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("io_autotune.so");
        let line = line(&path, &[]);
        let check = |here| judge(Path::new("/etc/slurm/plugstack.conf"), Some(&line), here);
        assert!(check((22, 5)).detail.contains("No such file"));
        fs::write(&path, "no library").unwrap();
        let found = check((22, 5));
        assert_eq!(found.state, CheckState::Failed);
        assert!(
            found.detail.contains("is no plugin of Slurm"),
            "{}",
            found.detail
        );
        assert_eq!(series_of_text("slurm-wlm 22.05.8\n"), Some((22, 5)));
        assert_eq!(series_of_text("slurm 24.11.5"), Some((24, 11)));
        assert_eq!(series_of_text("no version"), None);
    }
}
