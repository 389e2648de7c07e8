//! Text as HTML.

use io_autotune_protocol::is_deceptive;

/// A text from other people, as text of a page: nothing in it is markup, or hidden.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' => html.push('\n'),
            c if is_deceptive(c) => html.push('?'),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_others_wrote_is_markup() {
        assert_eq!(
            escaped("<a href=\"x\" o='1'>&amp;\u{202e}\u{1b}\n\u{e4}"),
            "&lt;a href=&quot;x&quot; o=&#39;1&#39;&gt;&amp;amp;??\n\u{e4}"
        );
    }
}
