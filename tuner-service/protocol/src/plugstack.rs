//! The plugin's line in plugstack.conf, as Slurm of this host finds it (spank(8)).

use std::fs;
use std::path::{Path, PathBuf};

/// The name of the plugin's file.
const PLUGIN: &str = "io_autotune.so";

/// The stub, which accepts the option and ignores it.
const STUB: &str = "io_autotune_stub.so";

/// The deepest nesting of includes that is followed, which ends cycles.
const DEEPEST: usize = 8;

/// A line that loads the plugin or its stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginLine {
    /// True if the line says `required`, and not `optional`.
    pub required: bool,
    /// The plugin's file.
    pub path: PathBuf,
    /// The arguments on the line, `key=value`, in alphabetical order.
    pub arguments: Vec<String>,
    /// The file with the line.
    pub found_in: PathBuf,
}

impl PluginLine {
    /// Returns true if the line loads the stub.
    #[must_use]
    pub fn is_stub(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == STUB)
    }
}

/// This host's slurm.conf: the one that `SLURM_CONF` names, the usual one, or slurmd's copy on a
/// configless node.
#[must_use]
pub fn slurm_conf() -> Option<PathBuf> {
    let conf = std::env::var_os("SLURM_CONF")
        .map_or_else(|| "/etc/slurm/slurm.conf".into(), PathBuf::from);
    [conf, "/run/slurm/conf/slurm.conf".into()]
        .into_iter()
        .find(|path| path.exists())
}

/// The plugstack.conf that a slurm.conf names.
#[must_use]
pub fn plugstack_conf(slurm_conf: &Path) -> PathBuf {
    let text = fs::read_to_string(slurm_conf).unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim()
            .eq_ignore_ascii_case("PlugStackConfig")
            .then(|| PathBuf::from(value.trim()))
    });
    named.unwrap_or_else(|| slurm_conf.with_file_name("plugstack.conf"))
}

/// The last line that loads the plugin or its stub, in plugstack.conf and the files that it
/// includes.
#[must_use]
pub fn plugin_line(plugstack: &Path) -> Option<PluginLine> {
    line_of(plugstack, DEEPEST)
}

fn line_of(plugstack: &Path, deepest: usize) -> Option<PluginLine> {
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
                    let mut arguments: Vec<String> = words.map(str::to_owned).collect();
                    arguments.sort();
                    found = Some(PluginLine {
                        required: word == "required",
                        path,
                        arguments,
                        found_in: plugstack.to_owned(),
                    });
                }
            }
            _ => {}
        }
    }
    found
}

/// The files that match a pattern whose last part may have one `*`, in order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_ours_is_found_through_includes() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("plugstack.d")).unwrap();
        let main =
            "# optional /x/io_autotune.so\noptional /x/other.so\ninclude plugstack.d/*.conf\n";
        fs::write(path("plugstack.conf"), main).unwrap();
        assert_eq!(plugin_line(&path("plugstack.conf")), None);
        fs::write(
            path("plugstack.d/b.conf"),
            "required /b/io_autotune.so b=2 a=1\n",
        )
        .unwrap();
        fs::write(path("plugstack.d/a.conf"), "optional /a/io_autotune.so\n").unwrap();
        fs::write(path("plugstack.d/c.off"), "optional /c/io_autotune.so\n").unwrap();
        let found = plugin_line(&path("plugstack.conf")).unwrap();
        let expected = PluginLine {
            required: true,
            path: "/b/io_autotune.so".into(),
            arguments: vec!["a=1".into(), "b=2".into()],
            found_in: path("plugstack.d/b.conf"),
        };
        assert_eq!(found, expected);
        // The file includes itself.
        fs::write(path("plugstack.conf"), "include plugstack.conf\n").unwrap();
        assert_eq!(plugin_line(&path("plugstack.conf")), None);

        let conf = path("slurm.conf");
        fs::write(&conf, "ClusterName=c\n").unwrap();
        assert_eq!(plugstack_conf(&conf), path("plugstack.conf"));
        fs::write(&conf, "plugstackconfig = /etc/p.conf\n").unwrap();
        assert_eq!(plugstack_conf(&conf), Path::new("/etc/p.conf"));
    }
}
