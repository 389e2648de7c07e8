//! The SPANK plugin as this host's Slurm would load it: the file that plugstack.conf names, and the
//! series of Slurm that it was built for. Slurm's loader takes no other (`src/common/plugstack.c`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use io_autotune_protocol::Check;
use object::{Object, ObjectSection, ObjectSymbol};

use super::{failed, ok, warning};

const NAME: &str = "plugin";
const PLUGIN: &str = "io_autotune.so";
const STUB: &str = "io_autotune_stub.so";
/// What a plugin says it was built for: Slurm's SLURM_VERSION_NUMBER (`slurm/spank.h`).
const SYMBOL: &str = "plugin_version";
/// A cycle of includes ends here.
const DEEPEST: usize = 8;

/// `None` where there is no Slurm.
pub(super) fn check() -> Option<Check> {
    let conf = std::env::var_os("SLURM_CONF")
        .map_or_else(|| "/etc/slurm/slurm.conf".into(), PathBuf::from);
    // slurmd's copy on a configless node.
    let conf = [conf, "/run/slurm/conf/slurm.conf".into()]
        .into_iter()
        .find(|path| path.exists())?;
    let plugstack = plugstack(&conf);
    let shown = Command::new("sinfo").arg("--version").output().ok()?;
    let here = series_of_text(&String::from_utf8_lossy(&shown.stdout))?;
    Some(judge(&plugstack, line_of(&plugstack, DEEPEST), here))
}

/// The major and minor number of a version, such as 24 and 11.
type Series = (u32, u32);

#[derive(Debug, PartialEq)]
struct Line {
    required: bool,
    path: PathBuf,
}

fn judge(plugstack: &Path, line: Option<Line>, here: Series) -> Check {
    let Some(Line { required, path }) = line else {
        return ok(
            NAME,
            format!("{} has no line for it on this host", plugstack.display()),
        );
    };
    let shown = path.display();
    let costs = "jobs run untuned, and sbatch refuses --io-autotune";
    if path.is_relative() {
        return ok(NAME, format!("{shown}, in Slurm's PluginDir"));
    }
    if path.file_name().is_some_and(|name| name == STUB) {
        return ok(NAME, "the stub: --io-autotune is taken and ignored");
    }
    match fs::read(&path).map(|data| built_for(&data)) {
        Err(error) => failed(NAME, format!("{shown}: {error}: {costs}")),
        Ok(None) => failed(NAME, format!("{shown} is no plugin of Slurm: {costs}")),
        Ok(Some((major, minor))) if (major, minor) != here => failed(
            NAME,
            format!(
                "{shown} was built for Slurm {major}.{minor:02}, and this host has {}.{:02}: \
                 {costs}; build it against this Slurm's headers",
                here.0, here.1
            ),
        ),
        Ok(Some((major, minor))) if required => warning(
            NAME,
            format!(
                "{shown} for Slurm {major}.{minor:02} is `required` in {}: write `optional`, so \
                 that no mistake of it stops a job",
                plugstack.display()
            ),
        ),
        Ok(Some((major, minor))) => ok(NAME, format!("{shown} for Slurm {major}.{minor:02}")),
    }
}

fn plugstack(conf: &Path) -> PathBuf {
    let text = fs::read_to_string(conf).unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim()
            .eq_ignore_ascii_case("PlugStackConfig")
            .then(|| PathBuf::from(value.trim()))
    });
    named.unwrap_or_else(|| conf.with_file_name("plugstack.conf"))
}

/// The last line of ours in plugstack.conf and what it includes (spank(8)).
fn line_of(plugstack: &Path, deepest: usize) -> Option<Line> {
    let text = fs::read_to_string(plugstack).ok()?;
    let mut found = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("include"), Some(pattern)) if deepest > 0 => {
                let parent = plugstack.parent().unwrap_or(Path::new("/"));
                for file in matching(&parent.join(pattern)) {
                    found = line_of(&file, deepest - 1).or(found);
                }
            }
            (Some(word @ ("optional" | "required")), Some(path)) => {
                let path = PathBuf::from(path);
                if path
                    .file_name()
                    .is_some_and(|name| name == PLUGIN || name == STUB)
                {
                    let required = word == "required";
                    found = Some(Line { required, path });
                }
            }
            _ => {}
        }
    }
    found
}

/// The files of a pattern whose last part may have one `*`, in order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    let Some((before, after)) = name.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let parent = pattern.parent().unwrap_or(Path::new("/"));
    let mut files: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        })
        .collect();
    files.sort();
    files
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

/// From `slurm 24.11.5` or `slurm-wlm 22.05.8`.
fn series_of_text(shown: &str) -> Option<Series> {
    let mut numbers = shown.split_whitespace().last()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    #[test]
    fn the_last_line_of_ours_is_found_through_includes() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("plugstack.d")).unwrap();
        let main =
            "# optional /x/io_autotune.so\noptional /x/other.so\ninclude plugstack.d/*.conf\n";
        fs::write(path("plugstack.conf"), main).unwrap();
        assert_eq!(line_of(&path("plugstack.conf"), DEEPEST), None);
        fs::write(
            path("plugstack.d/b.conf"),
            "required /b/io_autotune.so a=b\n",
        )
        .unwrap();
        fs::write(path("plugstack.d/a.conf"), "optional /a/io_autotune.so\n").unwrap();
        fs::write(path("plugstack.d/c.off"), "optional /c/io_autotune.so\n").unwrap();
        let found = line_of(&path("plugstack.conf"), DEEPEST).unwrap();
        assert_eq!(
            (found.required, found.path),
            (true, "/b/io_autotune.so".into())
        );
        // A file that includes itself.
        fs::write(path("plugstack.conf"), "include plugstack.conf\n").unwrap();
        assert_eq!(line_of(&path("plugstack.conf"), DEEPEST), None);

        let conf = path("slurm.conf");
        fs::write(&conf, "ClusterName=c\n").unwrap();
        assert_eq!(plugstack(&conf), path("plugstack.conf"));
        fs::write(&conf, "plugstackconfig = /etc/p.conf\n").unwrap();
        assert_eq!(plugstack(&conf), Path::new("/etc/p.conf"));
    }

    #[test]
    fn what_slurm_would_not_load_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PLUGIN);
        let check = |here| {
            let line = Line {
                required: false,
                path: path.clone(),
            };
            judge(Path::new("/etc/slurm/plugstack.conf"), Some(line), here)
        };
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
