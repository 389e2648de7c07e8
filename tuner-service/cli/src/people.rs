//! Users by name and number, as this host knows them.

use nix::unistd::{Uid, User};

/// A user's name, or the number if the host does not know the user.
pub(crate) fn name_of(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    }
}

/// A user's name as the service has it, otherwise as this host does.
pub(crate) fn called(user: Option<&str>, uid: u32) -> String {
    user.map_or_else(|| name_of(uid), str::to_owned)
}

/// A user's number, from a name or a number.
pub(crate) fn uid_of(text: &str) -> Result<u32, String> {
    if let Ok(uid) = text.parse() {
        return Ok(uid);
    }
    match User::from_name(text) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(format!("this host knows no user {text:?}: give the uid")),
        Err(error) => Err(format!(
            "user {text:?} cannot be looked up ({error}): give the uid"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_name_and_by_number() {
        assert_eq!(uid_of("root"), Ok(0));
        assert_eq!(uid_of("4294967295"), Ok(u32::MAX));
        assert!(uid_of("no-such-user").unwrap_err().contains("give the uid"));
        assert_eq!(name_of(0), "root");
        assert_eq!(called(Some("alice"), 4_000_000_123), "alice");
        assert_eq!(name_of(4_000_000_123), "4000000123");
    }
}
