//! Untrusted text for terminals, logs and reports.

/// Longer than any message of the service.
const LONGEST: usize = 4000;

/// The text on one line, cut, with `?` for control and bidirectional characters. The plugin's
/// `ioat_text_clean` does the same to the helper's output.
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

/// Control characters, and those that change the direction of text (Unicode TR 36).
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_acts_on_a_terminal() {
        let text = "no\0\u{1b}[2J\r\u{9b}x \u{202e}abc\nd\u{e4}";
        assert_eq!(shown(text), "no??[2J??x ?abc d\u{e4}");
        assert_eq!(shown(&"x".repeat(100_000)).len(), LONGEST);
    }
}
