//! A user's request by `--io-autotune`, in the canonical form that travels with the job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The treatment of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Measure it and apply the next parametrization.
    #[default]
    Tune,
    /// Measure and record, apply nothing.
    Observe,
}

/// The reason why a job is not treated as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The job's name does not identify an application, so different work would mix.
    MeaninglessName,
}

/// A user's request, from the plugin's canonical text
/// `[app=NAME,][name=TEXT,][comment=TEXT,][accelerator=NAME,]mode=tune|observe[,tell=yes][,dir=PATH]`. In TEXT letters,
/// digits and `. _ + @ -` stand for themselves, any other byte is `%XX`. Plugins before 0.3 send
/// `app` of the job's name, and `note=meaningless_name`.
///
/// The user can forge the text in the job's environment: the prolog parses it strictly again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The application's name; absent if the job has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The accelerator's name, or several joined by `+` in any order; absent: the site's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// The treatment of the job.
    #[serde(default)]
    pub mode: Mode,
    /// The reason why the mode is not the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The job's name. If there is no `app`, the service makes the application of it. A byte that
    /// is not UTF-8 is written as U+FFFD and two hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// The job's comment. It is stored only if the rule that decided has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// True if the job asked to be shown in its output what it runs with. Only the node uses this.
    #[serde(skip)]
    pub tell: bool,
    /// A directory of the user's on which commands that run as the user may act. Only the node uses
    /// this, so no other party learns it.
    #[serde(skip)]
    pub dir: Option<String>,
    /// The name of the rule that made the application of the job's name. The service sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// The application of jobs whose name does not name a program. It is never tuned.
const UNNAMED: &str = "unnamed";

/// The most bytes of a job's name or comment that the plugin sends.
const TEXT_MAX: usize = 256;

/// The reason why a request's text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An item is not `key=value` with a known key.
    #[error(
        "{0:?} is not one of app=NAME, name=TEXT, comment=TEXT, accelerator=NAME, mode=tune|observe, note=meaningless_name, tell=yes, dir=PATH"
    )]
    Item(String),
    /// A key is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A name is too long, or has a character that is not allowed.
    #[error(
        "{key}={value:?} is not a name: at most 128 of letters, digits and . _ + @ -, starting with a letter or digit"
    )]
    Name {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// A directory is no whole path, or has a character that is not allowed.
    #[error("dir={0:?} is not a whole path of at most 255 letters, digits and . _ + @ - /")]
    Directory(String),
    /// The job's name or comment does not have the form that the plugin sends.
    #[error("{key}: {problem}")]
    Text {
        /// The key.
        key: &'static str,
        /// The problem.
        problem: TextError,
    },
}

/// The reason why a text is not a job's name or comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A `%` without two upper-case hexadecimal digits, or a byte that must be escaped.
    #[error("every byte but letters, digits and . _ + @ - is written %XX, in upper case")]
    Escape,
    /// A zero byte.
    #[error("it has a zero byte")]
    Zero,
    /// The text is too long.
    #[error("it has more than {TEXT_MAX} bytes")]
    Long,
}

impl Request {
    /// Checks the names and texts of a request that was not read by [`FromStr`]. Returns an error
    /// for the wrong field.
    pub fn validate(&self) -> Result<(), RequestError> {
        for (key, value) in [("app", &self.app), ("accelerator", &self.accelerator)] {
            if let Some(value) = value {
                check_name(key, value)?;
            }
        }
        for (key, value) in [("name", &self.job_name), ("comment", &self.comment)] {
            if let Some(value) = value {
                check_text(value.as_bytes())
                    .map_err(|problem| RequestError::Text { key, problem })?;
            }
        }
        Ok(())
    }

    /// The name that gathers this job's runs.
    #[must_use]
    pub fn application(&self) -> &str {
        self.app.as_deref().unwrap_or(UNNAMED)
    }
}

/// Returns true if a name may contain this byte. The first byte must be a letter or digit.
#[must_use]
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._+@-".contains(&byte)
}

/// Returns true if a text is a name: 1 to 128 letters, digits and `. _ + @ -`, first a letter or
/// digit.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(is_name_byte)
}

fn check_text(bytes: &[u8]) -> Result<(), TextError> {
    if bytes.contains(&0) {
        Err(TextError::Zero)
    } else if bytes.len() > TEXT_MAX {
        Err(TextError::Long)
    } else {
        Ok(())
    }
}

fn decoded(text: &str) -> Result<String, TextError> {
    let digit = |byte: Option<u8>| match byte? {
        byte @ b'0'..=b'9' => Some(byte - b'0'),
        byte @ b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => high * 16 + low,
                _ => return Err(TextError::Escape),
            },
            byte if is_name_byte(byte) => byte,
            _ => return Err(TextError::Escape),
        });
    }
    check_text(&bytes)?;
    Ok(utf8(&bytes))
}

/// A text for any bytes: each byte that is not UTF-8 becomes U+FFFD and its two hexadecimal digits,
/// so that different bytes have different texts. U+FFFD itself is written in the same way. The text
/// is cut at its largest length.
fn utf8(bytes: &[u8]) -> String {
    let escaped = |bytes: &[u8]| -> Vec<String> {
        let escape = |byte: &u8| format!("{}{byte:02x}", char::REPLACEMENT_CHARACTER);
        bytes.iter().map(escape).collect()
    };
    let pieces = bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().flat_map(|c| match c {
            char::REPLACEMENT_CHARACTER => escaped(c.to_string().as_bytes()),
            c => vec![c.to_string()],
        });
        // The plugin may have cut a character in two.
        valid.chain(escaped(chunk.invalid())).collect::<Vec<_>>()
    });
    let mut text = String::new();
    for piece in pieces {
        if text.len() + piece.len() > TEXT_MAX {
            break;
        }
        text.push_str(&piece);
    }
    text
}

/// The bytes that a text stands for.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let digits = after.get(..2).filter(|_| c == char::REPLACEMENT_CHARACTER);
        let escaped = digits.and_then(|digits| match digits.bytes().all(is_digit) {
            true => u8::from_str_radix(digits, 16).ok(),
            false => None,
        });
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend(rest[..c.len_utf8()].bytes());
                rest = after;
            }
        }
    }
    bytes
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in bytes_of(text) {
        if is_name_byte(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns true if a text is a directory that a request may name: a whole path of at most 255
/// letters, digits and `. _ + @ - /`.
fn is_path(text: &str) -> bool {
    text.len() <= 255
        && text.starts_with('/')
        && text.bytes().all(|byte| byte == b'/' || is_name_byte(byte))
}

fn check_name(key: &'static str, value: &str) -> Result<(), RequestError> {
    if is_name(value) {
        Ok(())
    } else {
        Err(RequestError::Name {
            key,
            value: value.to_owned(),
        })
    }
}

impl FromStr for Request {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        fn set<T>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), RequestError> {
            match slot.replace(value) {
                None => Ok(()),
                Some(_) => Err(RequestError::Twice(key)),
            }
        }
        let (mut app, mut accelerator, mut mode, mut note) = (None, None, None, None);
        let (mut job_name, mut comment, mut tell, mut dir) = (None, None, None, None);
        let text_of =
            |key, value| decoded(value).map_err(|problem| RequestError::Text { key, problem });
        for item in text.split(',').filter(|item| !item.is_empty()) {
            match item.split_once('=') {
                Some(("app", value)) => {
                    check_name("app", value)?;
                    set(&mut app, "app", value.to_owned())?;
                }
                Some(("accelerator", value)) => {
                    check_name("accelerator", value)?;
                    set(&mut accelerator, "accelerator", value.to_owned())?;
                }
                Some(("name", value)) => set(&mut job_name, "name", text_of("name", value)?)?,
                Some(("comment", value)) => {
                    set(&mut comment, "comment", text_of("comment", value)?)?;
                }
                Some(("mode", "tune")) => set(&mut mode, "mode", Mode::Tune)?,
                Some(("mode", "observe")) => set(&mut mode, "mode", Mode::Observe)?,
                Some(("note", "meaningless_name")) => {
                    set(&mut note, "note", Note::MeaninglessName)?;
                }
                Some(("tell", "yes")) => set(&mut tell, "tell", true)?,
                Some(("dir", path)) if is_path(path) => set(&mut dir, "dir", path.to_owned())?,
                Some(("dir", path)) => return Err(RequestError::Directory(path.to_owned())),
                _ => return Err(RequestError::Item(item.to_owned())),
            }
        }
        Ok(Self {
            app,
            accelerator,
            mode: mode.unwrap_or_default(),
            note,
            job_name,
            comment,
            tell: tell.unwrap_or_default(),
            dir,
            rule: None,
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(app) = &self.app {
            write!(f, "app={app},")?;
        }
        if let Some(job_name) = &self.job_name {
            write!(f, "name={},", encoded(job_name))?;
        }
        if let Some(comment) = &self.comment {
            write!(f, "comment={},", encoded(comment))?;
        }
        if let Some(accelerator) = &self.accelerator {
            write!(f, "accelerator={accelerator},")?;
        }
        f.write_str(match self.mode {
            Mode::Tune => "mode=tune",
            Mode::Observe => "mode=observe",
        })?;
        match self.note {
            Some(Note::MeaninglessName) => f.write_str(",note=meaningless_name")?,
            None => {}
        }
        f.write_str(if self.tell { ",tell=yes" } else { "" })?;
        match &self.dir {
            Some(dir) => write!(f, ",dir={dir}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_text_is_read() {
        let request: Request = "app=ocean,accelerator=romio,mode=observe".parse().unwrap();
        assert_eq!(request.app.as_deref(), Some("ocean"));
        assert_eq!(request.accelerator.as_deref(), Some("romio"));
        assert_eq!(request.mode, Mode::Observe);
        let several: Request = "accelerator=romio+page-cache".parse().unwrap();
        assert_eq!(several.accelerator.as_deref(), Some("romio+page-cache"));
    }

    /// A service of the release before would refuse a key that it does not know.
    #[test]
    fn what_the_job_is_told_is_between_it_and_its_nodes() {
        let text = "app=ocean,mode=tune,tell=yes,dir=/project/a.b/c";
        let request: Request = text.parse().unwrap();
        assert!(request.tell);
        assert_eq!(request.dir.as_deref(), Some("/project/a.b/c"));
        assert_eq!(request.to_string(), text);
        let sent = serde_json::to_value(&request).unwrap();
        assert_eq!(sent, serde_json::json!({ "app": "ocean", "mode": "tune" }));
    }

    /// Attack (environment): A job's name or option has escapes, lines, a path, a shell's words,
    /// SQL, zero bytes, or 1,000,000 characters.
    /// Outcome: It becomes a short name of letters, digits and few signs, or is refused.
    #[test]
    fn each_mistake_is_named() {
        for (text, expected) in [
            ("mode=off", "mode=off"),
            ("app=a,app=b", "app is given twice"),
            ("app=../../etc", "not a name"),
            ("app=", "not a name"),
            ("romio", "is not one of"),
            ("app=a\nb", "not a name"),
            ("name=a,name=b", "name is given twice"),
            ("name=a b", "name: every byte but"),
            ("tell=no", "is not one of"),
            ("dir=project", "is not a whole path"),
            ("dir=/a b", "is not a whole path"),
            ("dir=/a\n", "is not a whole path"),
            ("dir=/a,dir=/b", "dir is given twice"),
            ("name=%2", "upper case"),
            ("name=%2f", "upper case"),
            ("comment=%ZZ", "comment: every byte but"),
            ("comment=a%00b", "comment: it has a zero byte"),
            (
                &format!("name={}", "a".repeat(257)),
                "name: it has more than 256 bytes",
            ),
        ] {
            let message = text.parse::<Request>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn names_and_comments_travel_as_they_are() {
        let text = "name=nf-ALIGN_%28a%2Cb%29,comment=%C3%A4%0A,mode=tune";
        let request: Request = text.parse().unwrap();
        assert_eq!(request.job_name.as_deref(), Some("nf-ALIGN_(a,b)"));
        assert_eq!(request.comment.as_deref(), Some("ä\n"));
        assert_eq!(request.application(), "unnamed");
        assert_eq!(request.to_string(), text);
        let cut: Request = "name=a%C3,mode=tune".parse().unwrap();
        assert_eq!(cut.job_name.as_deref(), Some("a\u{fffd}c3"));
        assert_eq!(cut.to_string(), "name=a%C3,mode=tune");
        let longest = format!("name={},mode=tune", "%FF".repeat(256));
        let longest: Request = longest.parse().unwrap();
        assert_eq!(longest.job_name.as_deref().map(str::len), Some(255));
        assert_eq!(longest.to_string().parse(), Ok(longest));
    }

    /// Attack (environment): Jobs have names that look alike, are equal in ASCII, are no UTF-8, or
    /// are made of another name.
    /// Outcome: Each is an application of its own, and shown harmlessly.
    #[test]
    fn names_of_other_bytes_are_other_texts() {
        let names = [
            "a%FF",
            "a%FE",
            "a%C3",
            "a%C3%28",
            "a%EF%BF%BD",
            "a%EF%BF%BDff",
            "a%EF%BF%BD%FF",
            "aff",
            "a%E2%82",
            "a%ED%A0%80",
        ];
        let mut known = std::collections::BTreeSet::new();
        for name in names {
            let text = format!("name={name},mode=tune");
            let request: Request = text.parse().unwrap();
            assert_eq!(request.to_string(), text);
            assert!(known.insert(request.job_name), "{name}");
        }
    }

    #[test]
    fn a_text_in_json_is_no_longer_and_has_no_zero_byte_either() {
        let named = |job_name: &str| Request {
            job_name: Some(job_name.to_owned()),
            ..Request::default()
        };
        assert_eq!(named(&"ä".repeat(128)).validate(), Ok(()));
        for (text, problem) in [
            ("a\0", TextError::Zero),
            (&"ä".repeat(129), TextError::Long),
        ] {
            let error = RequestError::Text {
                key: "name",
                problem,
            };
            assert_eq!(named(text).validate(), Err(error));
        }
    }

    /// Attack (parsers): A request's body, query or text.
    #[test]
    fn fuzz_request() {
        let samples = [
            "app=ocean,accelerator=romio,mode=observe,note=meaningless_name",
            "name=nf-ALIGN_%28a%29,comment=rule_a%FF%20b,accelerator=romio,mode=tune",
            "mode=tune",
        ];
        io_autotune_fuzzing::Target::new("request", &samples).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match text.parse::<Request>() {
                Ok(request) => {
                    assert_eq!(request.validate(), Ok(()));
                    assert_eq!(request.to_string().parse::<Request>().unwrap(), request);
                }
                Err(error) => {
                    let message = error.to_string();
                    let named = ["app", "name", "comment", "accelerator", "mode", "note"];
                    assert!(named.iter().any(|key| message.contains(key)), "{message}");
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
            }
        });
    }
}
