//! Manual pages and shell completion, from the command line's own description.

use std::path::Path;

use clap_complete::Shell;

use crate::help;
use crate::service::CliError;

const NAME: &str = "io-autotune";

/// The completion of a shell.
pub(crate) fn completion(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut help::described(), NAME, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes a page for the command and one for each of its commands. Returns a message.
pub(crate) fn write(directory: &Path) -> Result<String, CliError> {
    let unwritten = |source| CliError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    std::fs::create_dir_all(directory).map_err(unwritten)?;
    clap_mangen::generate_to(help::described(), directory).map_err(unwritten)?;
    Ok(format!(
        "{NAME}.1 and a page for each of its commands are in {}\n",
        directory.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_page_and_its_completion() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        let bash = completion(Shell::Bash);
        for command in help::described().get_subcommands() {
            let name = command.get_name();
            let page = directory.path().join(format!("{NAME}-{name}.1"));
            let page = std::fs::read_to_string(page).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}");
            assert!(
                bash.contains(&format!(
                    "io__autotune__subcmd__{}",
                    name.replace('-', "__subcmd__")
                )),
                "{name}"
            );
        }
        for nested in ["transfer-warm-start", "audit-orders", "admin-retention"] {
            let page = directory.path().join(format!("{NAME}-{nested}.1"));
            assert!(page.is_file(), "{nested}");
        }
        for (old, _) in crate::spelling::MOVED {
            assert!(
                !bash.contains(&format!("\"io__autotune__subcmd__{old}\"")),
                "{old}"
            );
            assert!(
                !directory.path().join(format!("{NAME}-{old}.1")).exists(),
                "{old}"
            );
        }
        let page = std::fs::read_to_string(directory.path().join("io-autotune.1")).unwrap();
        assert!(page.contains("Exit status"));
    }
}
