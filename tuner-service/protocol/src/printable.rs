//! Makes untrusted text safe for terminals, logs and reports: the only place that decides which
//! characters are shown.

use std::fmt::Write;

/// The most characters of a text: more than any message of the service has.
const LONGEST: usize = 4000;

/// Invisible characters, and those that change the direction or order of text: Unicode's Cf,
/// `Default_Ignorable_Code_Point` and the line separators (Unicode TR 36). The plugin's `text.c`
/// has the same.
const DECEPTIVE: [(char, char); 29] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    // Characters for private use, for which a font may draw anything.
    ('\u{e000}', '\u{f8ff}'),
    ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10fffd}'),
];

/// Returns true if a character acts on a terminal, is invisible, or reorders the text around it.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    let is_listed = || {
        DECEPTIVE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
    };
    c.is_control() || (!c.is_ascii() && is_listed())
}

/// The text as one line, cut, with `?` for deceptive characters. The plugin's `ioat_text_clean`
/// does the same with the helper's output.
#[must_use]
pub fn shown(text: &str) -> String {
    text.chars()
        .take(LONGEST)
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if is_deceptive(c) => '?',
            c => c,
        })
        .collect()
}

/// A whole output with its lines, and with `?` for deceptive characters.
#[must_use]
pub fn shown_lines(text: &str) -> String {
    text.chars()
        .map(|c| if c != '\n' && is_deceptive(c) { '?' } else { c })
        .collect()
}

/// JSON with its deceptive characters escaped: the text differs, but not the value.
#[must_use]
pub fn shown_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_deceptive(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack (others): A shown text has zero bytes, escapes, lines, characters that reorder, or
    /// 100,000 characters.
    /// Outcome: Such characters are question marks, and the text is cut.
    #[test]
    fn nothing_that_is_shown_acts_on_a_terminal() {
        let text = "no\0\u{1b}[2J\r\u{9b}x \u{202e}abc\nd\u{e4}";
        assert_eq!(shown(text), "no??[2J??x ?abc d\u{e4}");
        assert_eq!(shown(&"x".repeat(100_000)).len(), LONGEST);
    }

    #[test]
    fn what_is_invisible_or_reorders_text_is_shown_as_a_question() {
        let controls = [
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0041}',
            '\u{f8ff}',
        ];
        for c in controls {
            assert!(is_deceptive(c), "{:x}", u32::from(c));
            assert_eq!(shown(&format!("a{c}b")), "a?b");
            assert_eq!(shown_lines(&format!("a{c}\nb\u{1b}\n")), "a?\nb?\n");
        }
        for c in [
            'a',
            '\u{e4}',
            '\u{20ac}',
            '\u{5d0}',
            '\u{4e2d}',
            '\u{1f600}',
        ] {
            assert!(!is_deceptive(c), "{c}");
        }
    }

    #[test]
    fn json_says_the_same_without_them() {
        let value = serde_json::json!({ "why": "a\u{202e}b\u{e0041}\u{7f}\u{9b}\u{e4}", "n": [1] });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let text = shown_json(&pretty);
        assert!(text.lines().count() > 1 && !text.lines().any(|l| l.chars().any(is_deceptive)));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
