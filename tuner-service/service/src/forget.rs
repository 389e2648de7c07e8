//! `io-autotuned --forget USER`: what it says to the admin who sits before it.

use std::fmt::Write as _;

use clap::Args;
use io_autotune_protocol::shown;
use io_autotune_store::{
    Audit, Forget, Forgetting, Forgot, Forgotten, ForgottenRows, Store, StoreOptions,
    kept_of_the_forgotten,
};
use nix::unistd::{Uid, User};

use crate::config::StartupError;

/// The options of `--forget`.
#[derive(Args)]
pub(crate) struct ForgetArguments {
    /// Forget a user who has left, by login name or uid (+UID if it is a name as well), as the role in --database: what they are called, what they
    /// wrote and what leads to them goes, or gets a drawn name; what was learnt and all sums stay. And exit.
    #[arg(long, value_name = "USER", requires = "database")]
    pub(crate) forget: Option<String>,
    /// The URL of the database as the schema's owner, as --migrate gets it. The service's own role may not rewrite
    /// history.
    #[arg(long, value_name = "URL", requires = "forget")]
    database: Option<String>,
    /// No pseudonym: all who are erased are one, and their jobs lose number, nodes and cluster.
    #[arg(long, requires = "forget")]
    erase: bool,
    /// Say what would be done and what stays, and change nothing.
    #[arg(long, requires = "forget")]
    dry_run: bool,
    /// The reason, for the audit; it must not say who it was.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "forget",
        default_value = "io-autotuned --forget"
    )]
    why: String,
}

/// Forgets a user, and returns what to print.
pub(crate) async fn forget(
    user: &str,
    arguments: &ForgetArguments,
) -> Result<String, StartupError> {
    let known = User::from_name(user).ok().flatten();
    let known_uid = known.map(|user| user.uid.as_raw());
    if user.parse::<u32>() == Ok(0) || known_uid == Some(0) {
        return Err(StartupError::ForgetRoot);
    }
    let url = arguments.database.as_deref().unwrap_or_default();
    let url: io_autotune_store::DatabaseUrl = url.parse().map_err(StartupError::ForgetUrl)?;
    url.check_files().map_err(StartupError::ForgetUrl)?;
    let store = Store::of(url, StoreOptions::default());
    let asked = Forget {
        user,
        known_uid,
        how: match arguments.erase {
            true => Forgetting::Erase,
            false => Forgetting::Pseudonym,
        },
        is_dry_run: arguments.dry_run,
    };
    let audit = Audit::unbounded(Uid::current().as_raw(), &arguments.why);
    match store.forget(&asked, audit).await? {
        Forgot::Nobody => Ok(format!("nothing is known of {}\n", shown(user))),
        Forgot::Awaited(runs) => Err(StartupError::ForgetAwaited(shown(user), runs)),
        Forgot::Done(done) => Ok(told(&shown(user), &done, &asked)),
    }
}

fn told(user: &str, done: &Forgotten, asked: &Forget<'_>) -> String {
    let mut text = match (asked.how, asked.is_dry_run) {
        (Forgetting::Pseudonym, true) => {
            format!("{user}, uid {}, would get a drawn name and uid\n", done.uid)
        }
        (Forgetting::Pseudonym, false) => format!(
            "{user}, uid {}, is {}, uid {}, from now on\n",
            done.uid, done.name, done.new_uid
        ),
        (Forgetting::Erase, true) => format!("{user}, uid {}, would be erased\n", done.uid),
        (Forgetting::Erase, false) => format!("{user}, uid {}, is erased\n", done.uid),
    };
    for rows in &done.tables {
        let _ = writeln!(text, "{}", line(rows));
    }
    text.push_str("\nwhat stays, and why\n");
    for (why, columns) in kept_of_the_forgotten() {
        let _ = writeln!(text, "  {why}: {}", columns.join(", "));
    }
    text.push_str("\nwhat others wrote\n");
    if done.named.is_empty() {
        text.push_str("  nothing names them\n");
    }
    for (place, rows) in &done.named {
        let _ = writeln!(text, "  {place}: {rows} rows still have one of their names");
    }
    text.push_str(ELSEWHERE);
    if asked.is_dry_run {
        text.push_str("\nnothing was changed\n");
    }
    text
}

fn line(rows: &ForgottenRows) -> String {
    let mut said = Vec::new();
    if rows.removed > 0 {
        said.push(format!("{} rows removed", rows.removed));
    }
    if rows.changed > 0 {
        let mut columns = rows.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        said.push(format!("{} rows: {}", rows.changed, columns.join(", ")));
    }
    format!("  {:<14} {}", rows.table, said.join("; "))
}

/// What this program does not reach.
const ELSEWHERE: &str = "
elsewhere
  kept reports: the next io-autotune-report writes them anew without the names, or one that you start now
  not ours: exports and mails that have left, dumps and replicas of the database, the journal and slurmd's log,
  reports that still wait on nodes, and Slurm's own accounting (docs/privacy.md)
";

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> Forgotten {
        Forgotten {
            uid: 1000,
            new_uid: 4_000_000_001,
            name: "left-12345678".to_owned(),
            tables: vec![ForgottenRows {
                table: "outcomes",
                changed: 3,
                removed: 1,
                columns: vec!["uid", "account", "uid"],
            }],
            named: vec![("audit.why".to_owned(), 2)],
        }
    }

    #[test]
    fn what_is_done_and_what_would_be_is_told_alike() {
        let mut asked = Forget {
            user: "alice",
            known_uid: None,
            how: Forgetting::Pseudonym,
            is_dry_run: false,
        };
        let really = told("alice", &done(), &asked);
        assert!(
            really.starts_with("alice, uid 1000, is left-12345678, uid 4000000001"),
            "{really}"
        );
        assert!(
            really.contains("  outcomes       1 rows removed; 3 rows: account, uid\n"),
            "{really}"
        );
        assert!(
            really.contains("  audit.why: 2 rows still have"),
            "{really}"
        );
        assert!(really.contains("runs.elapsed"), "{really}");
        asked.is_dry_run = true;
        let tried = told("alice", &done(), &asked);
        let lines =
            |text: &str| -> Vec<String> { text.lines().skip(1).map(str::to_owned).collect() };
        assert_eq!(
            lines(&tried),
            [
                lines(&really),
                vec![String::new(), "nothing was changed".to_owned()]
            ]
            .concat()
        );
    }
}
