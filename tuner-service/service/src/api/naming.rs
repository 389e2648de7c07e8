//! The name under which an application goes on.
//!
//! Before 0.4 the name of an application had `_` in the place of each byte that a name must not
//! have, so that jobs of different names could share it. An application that only one job name had
//! goes on under its old name.

use std::collections::BTreeSet;

use io_autotune_catalogue::Resolved;
use io_autotune_protocol::{ApplicationName, Request, is_application};
use io_autotune_store::{Called, Store};

use super::ApiError;
use crate::retry::retried;

/// A user's request whose application is made of the job's name, with the name under which that
/// application goes on.
pub(super) async fn resumed(
    store: &Store,
    uid: u32,
    resolved: Resolved,
) -> Result<Resolved, ApiError> {
    let Resolved { request, full_name } = resolved;
    let name = match request.app {
        // Only a name that was made of another one, or has a `_`, can be an old one.
        Some(name) if full_name.is_some() || name.contains('_') => name,
        app => {
            let request = Request { app, ..request };
            return Ok(Resolved { request, full_name });
        }
    };
    let full = full_name.as_deref().unwrap_or(&name);
    let known = retried(|| store.applications_called(Some(uid), &name, full)).await?;
    let (app, full_name) = resumed_name(name, full_name, &known);
    let request = Request {
        app: Some(app),
        ..request
    };
    Ok(Resolved { request, full_name })
}

/// The name of the application that a person means, by its name or by its full name.
pub(super) async fn meant(
    store: &Store,
    owner_uid: Option<u32>,
    text: String,
) -> Result<String, ApiError> {
    if is_application(&text) {
        return Ok(text);
    }
    let known = store.applications_called(owner_uid, &text, &text).await?;
    let names: BTreeSet<String> = known.into_iter().map(|one| one.name).collect();
    match (names.len(), names.first(), ApplicationName::of(&text)) {
        (1, Some(name), _) => Ok(name.clone()),
        (0, _, Some(made)) => Ok(made.name().to_owned()),
        _ => Err(ApiError::conflict(format!(
            "{text:?} is several applications: name one of {}",
            Vec::from_iter(names).join(", ")
        ))),
    }
}

/// The name and the full name of an application, given those that have one of the two.
fn resumed_name(
    name: String,
    full_name: Option<String>,
    known: &[Called],
) -> (String, Option<String>) {
    let full = full_name.as_deref().unwrap_or(&name);
    if let Some(own) = known
        .iter()
        .find(|one| one.full_name.as_deref() == Some(full))
    {
        return (own.name.clone(), own.full_name.clone());
    }
    let is_anothers = known
        .iter()
        .any(|one| one.name == name && one.full_name.is_some());
    match is_anothers {
        true => ApplicationName::made(full).into_parts(),
        false => (name, full_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, full_name: Option<&str>) -> Called {
        Called {
            name: name.to_owned(),
            full_name: full_name.map(str::to_owned),
        }
    }

    /// The application under which a job of this name goes on.
    fn resumed(job_name: &str, known: &[Called]) -> (String, Option<String>) {
        let (name, full_name) = ApplicationName::of(job_name).unwrap().into_parts();
        resumed_name(name, full_name, known)
    }

    #[test]
    fn who_had_an_old_name_alone_keeps_it_and_nobody_else_has_it() {
        let old = [called("calc_____", Some("calc_\u{43c}\u{43e}"))];
        let (name, full_name) = resumed("calc_\u{43c}\u{43e}", &old);
        assert_eq!(name, "calc_____");
        assert_eq!(full_name.as_deref(), Some("calc_\u{43c}\u{43e}"));
        for other in ["calc_\u{444}\u{438}", "calc_____", "calc_  ()"] {
            let (name, full_name) = resumed(other, &old);
            assert_eq!(name, ApplicationName::made(other).name(), "{other}");
            assert_eq!(full_name.as_deref(), Some(other));
            // And there it goes on.
            let known = [old[0].clone(), called(&name, Some(other))];
            assert_eq!(resumed(other, &known), (name, full_name));
        }
    }

    #[test]
    fn what_several_were_mixed_in_is_entered_by_its_own_name_alone() {
        let old = [called("calc_____", None)];
        assert_eq!(resumed("calc_____", &old), ("calc_____".into(), None));
        let (name, full_name) = resumed("calc_\u{444}\u{438}", &old);
        assert_eq!(name, ApplicationName::made("calc_\u{444}\u{438}").name());
        assert!(full_name.is_some());
    }

    #[test]
    fn a_name_goes_on_as_it_is() {
        assert_eq!(resumed("a_b", &[]), ("a_b".into(), None));
        assert_eq!(resumed("a_b", &[called("a_b", None)]), ("a_b".into(), None));
    }
}
