//! Text folded to a width, between words.

use unicode_width::UnicodeWidthStr;

use crate::screen::Screen;

/// The width of a label, such as `gain`, with the spaces after it.
const LABEL: usize = 13;
/// A line that ends in a command to paste, which is kept whole.
const COMMANDS: [&str; 2] = ["to end it: ", "to take it back: "];

/// The pieces of a text after which a line may end.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '-', ',', '/'])
}

/// The lines of a text in this width. Only a word that is wider than that is broken.
pub(super) fn lines(text: &str, width: usize) -> Vec<String> {
    let parts = pieces(text).flat_map(|piece| match piece.trim_end().width() > width {
        true => piece.chars().map(String::from).collect(),
        false => vec![piece.to_owned()],
    });
    let mut lines = vec![String::new()];
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.width() + part.trim_end().width() <= width => {
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Lines that begin with labels, folded to a terminal's width: what does not fit stands below, after
/// the label.
pub(crate) fn labelled(text: &str, screen: &Screen) -> String {
    let Some(width) = screen.width else {
        return text.to_owned();
    };
    let folded = text.lines().flat_map(|line| {
        let is_whole = line.width() <= width || COMMANDS.iter().any(|one| line.contains(one));
        let label = line.get(..LABEL).filter(|label| label.ends_with(' '));
        match (is_whole, label) {
            (true, _) => vec![line.to_owned()],
            (false, None) => lines(line, width),
            (false, Some(label)) => {
                let rest = lines(&line[LABEL..], width.saturating_sub(LABEL));
                let first = std::iter::once(label).chain(std::iter::repeat(""));
                let rest = rest.iter().zip(first);
                rest.map(|(rest, label)| format!("{label:LABEL$}{rest}"))
                    .collect()
            }
        }
    });
    folded.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_folded_between_words() {
        assert_eq!(
            lines("cb_nodes=8 romio_ds_read=enable", 21),
            ["cb_nodes=8", "romio_ds_read=enable"]
        );
        assert_eq!(lines("a-name-of-its-own", 9), ["a-name-", "of-its-", "own"]);
        assert_eq!(
            lines("abcdefgh ij", 5),
            ["abcde", "fgh", "ij"],
            "it is wider than the width"
        );
        assert_eq!(
            lines("\u{4e2d}\u{4e2d}\u{4e2d}", 5),
            ["\u{4e2d}\u{4e2d}", "\u{4e2d}"]
        );
        assert_eq!(lines("", 5), [""]);
    }

    #[test]
    fn what_does_not_fit_stands_after_the_label() {
        let text = "gain         Tuned runs take less time than the default.\n\nshort\n";
        assert_eq!(labelled(text, &Screen::plain()), text);
        assert_eq!(
            labelled(text, &Screen::wide(40)),
            "gain         Tuned runs take less time\n             than the default.\n\nshort\n"
        );
        let command = "             to end it: io-autotune off --application ocean --end\n";
        assert_eq!(
            labelled(command, &Screen::wide(40)),
            command,
            "it is pasted"
        );
    }
}
