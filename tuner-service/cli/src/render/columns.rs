//! Lists, one line a row, in columns that fit the terminal.

use anstyle::{AnsiColor, Style};
use io_autotune_protocol::shown;
use unicode_width::UnicodeWidthStr;

use super::fold::{labelled, lines, pieces};
use crate::format::Wanted;
use crate::screen::Screen;

const GAP: &str = "  ";
/// The width of a cell that shows what it is: a parameter with its value, for example.
const READABLE: usize = 20;

/// The meaning of a cell, which gives its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Notable,
}

impl Tone {
    /// The colour on a terminal.
    fn ink(self) -> Option<AnsiColor> {
        match self {
            Tone::Plain => None,
            Tone::Good => Some(AnsiColor::Green),
            Tone::Bad => Some(AnsiColor::Red),
            Tone::Notable => Some(AnsiColor::Yellow),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// A cell with a tone. Text from other people is cleaned here, before it is coloured.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        let text = shown(&text.into());
        Self { text, tone }
    }

    /// The text alone.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    name: String,
    right: bool,
    /// The width that the user wants, whatever the terminal's.
    width: Option<usize>,
    /// The least width to which it may be folded; `None`: it is never folded.
    least: Option<usize>,
    /// The order in which columns are left out if there is no room, the lowest number first;
    /// `None`: never.
    spare: Option<u8>,
    /// True if words with which all of its values begin may be said once, below the list.
    alike: bool,
}

impl Column {
    pub(crate) fn left(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn right(name: &str) -> Self {
        Self {
            right: true,
            ..Self::left(name)
        }
    }

    /// A column as `--format` asks for it: `%20` for text on the right, `%-20` on the left.
    pub(crate) fn of(Wanted { field, width }: &Wanted) -> Self {
        Self {
            right: width.map_or(field.right, |(_, right)| right),
            width: width.map(|(width, _)| width),
            least: field.least,
            ..Self::left(field.name)
        }
    }

    /// The column with a least width to which it may be folded.
    pub(crate) fn least(self, least: usize) -> Self {
        Self {
            least: Some(least),
            ..self
        }
    }

    /// The column as one that may be left out if there is no room, the lowest number first.
    pub(crate) fn spare(self, order: u8) -> Self {
        Self {
            spare: Some(order),
            ..self
        }
    }

    /// The column as one whose values may begin alike.
    pub(crate) fn alike(self) -> Self {
        Self {
            alike: true,
            ..self
        }
    }
}

/// A list.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    header: bool,
}

impl Columns {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            header: true,
        }
    }

    pub(crate) fn without_header(self, without: bool) -> Self {
        Self {
            header: !without,
            ..self
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Leaves a column out, the first of which is 0.
    pub(crate) fn leave_out(&mut self, place: usize) {
        self.columns.remove(place);
        for row in &mut self.rows {
            row.remove(place);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The header, a rule below it, and the rows. Where they do not fit, words with which values
    /// begin alike are said once, columns that can be spared are left out, and the rest is folded.
    /// Only text in a column whose width was asked for is cut, and ends in `+`, as in sacct.
    pub(crate) fn text(&self, screen: &Screen) -> String {
        let Some(most) = screen.width else {
            return self.fitted(screen);
        };
        let mut list = self.clone();
        let mut notes = String::new();
        for place in 0..self.columns.len() {
            if self.columns[place].alike && !list.fits(most, usize::MAX) {
                notes.push_str(&list.said_once(place));
            }
        }
        while !list.fits(most, READABLE) {
            let spare = list.columns.iter().enumerate();
            let spare = spare.filter_map(|(place, column)| Some((column.spare?, place)));
            let Some((_, place)) = spare.min() else {
                break;
            };
            list.leave_out(place);
        }
        list.fitted(screen) + &labelled(&notes, screen)
    }

    /// Returns true if the list fits with columns that are folded to this width, or to their widest
    /// word.
    fn fits(&self, most: usize, folded: usize) -> bool {
        let widths = self.widths(None).into_iter().enumerate();
        let widths = widths.map(|(place, width)| match self.columns[place].least {
            Some(_) => width.min(self.widest_word(place).max(folded)),
            None => width,
        });
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        widths.sum::<usize>() + gaps <= most
    }

    /// The widest word of a column.
    fn widest_word(&self, place: usize) -> usize {
        let words = self.rows.iter().flat_map(|row| pieces(&row[place].text));
        let words = words.chain([self.columns[place].name.as_str()]);
        words.map(|word| word.trim_end().width()).max().unwrap_or(0)
    }

    /// Takes the words with which the changes of a column begin out of it; returns a line about them.
    fn said_once(&mut self, place: usize) -> String {
        let changes = self.rows.iter().map(|row| &row[place].text);
        let mut changes = changes.filter(|text| text.contains('='));
        let Some(first) = changes.next() else {
            return String::new();
        };
        let first: Vec<&str> = first.split(' ').collect();
        let same = |other: &String| {
            let both = first.iter().zip(other.split(' '));
            both.take_while(|(one, other)| *one == other).count()
        };
        let Some(count) = changes.map(same).min().filter(|count| *count > 0) else {
            return String::new();
        };
        let said = first[..count].join(" ");
        for row in &mut self.rows {
            if let Some(rest) = row[place].text.strip_prefix(&said) {
                row[place].text = format!("...{rest}");
            }
        }
        format!("... is {said}\n")
    }

    fn fitted(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.width);
        let mut text: Vec<String> = Vec::new();
        if self.header {
            let names = self.columns.iter().map(|one| Cell::new(one.name.clone()));
            let names = self.folded(&names.collect::<Vec<_>>(), &widths);
            let names = names.iter().map(|line| self.line(line, &widths, false));
            text.extend(names.map(|line| match screen.colour {
                true => styled(&line, Style::new().bold()),
                false => line,
            }));
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push(rules.join(GAP));
        }
        let rows = self.rows.iter().flat_map(|row| self.folded(row, &widths));
        text.extend(rows.map(|line| self.line(&line, &widths, screen.colour)));
        text.into_iter().map(|line| line + "\n").collect()
    }

    /// The lines of a row.
    fn folded(&self, row: &[Cell], widths: &[usize]) -> Vec<Vec<Cell>> {
        let cells = row.iter().zip(&self.columns).zip(widths);
        let cells: Vec<Vec<String>> = cells
            .map(|((cell, column), width)| match column.width {
                Some(_) => vec![cut(&cell.text, *width)],
                None => lines(&cell.text, *width),
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let line = |number: usize| {
            let texts = row.iter().zip(&cells);
            let line = texts.map(|(cell, texts)| Cell {
                text: texts.get(number).cloned().unwrap_or_default(),
                tone: cell.tone,
            });
            line.collect()
        };
        (0..height).map(line).collect()
    }

    /// `sacct --parsable2`: names and values with `|` between them, nothing cut.
    pub(crate) fn parsable(&self) -> String {
        let names = self.columns.iter().map(|one| one.name.clone()).collect();
        let header = self.header.then_some(names);
        // A value with a bar would look like two values.
        let values = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.replace('|', "?")).collect();
        let lines = header.into_iter().chain(self.rows.iter().map(values));
        lines
            .map(|line: Vec<String>| line.join("|") + "\n")
            .collect()
    }

    /// Comma-separated values (RFC 4180), with a header.
    pub(crate) fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|column| &column.name))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| &cell.text))?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                column.width.unwrap_or_else(|| {
                    let cells = self.rows.iter().map(|row| row[place].text.width());
                    let header = if self.header { column.name.width() } else { 0 };
                    cells.max().unwrap_or(0).max(header)
                })
            })
            .collect();
        let Some(most) = most else {
            return widths;
        };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        // The widest column that may be folded loses one character after the other, and a word is
        // broken only where nothing else is left.
        let words: Vec<usize> = (0..widths.len())
            .map(|place| self.widest_word(place))
            .collect();
        for is_whole in [true, false] {
            while widths.iter().sum::<usize>() + gaps > most {
                let places = self.columns.iter().enumerate().filter(|(place, column)| {
                    let least = column.least.filter(|_| column.width.is_none());
                    let word = if is_whole { words[*place] } else { 0 };
                    least.is_some_and(|least| widths[*place] > least.max(word))
                });
                let Some((widest, _)) = places.max_by_key(|(place, _)| widths[*place]) else {
                    break;
                };
                widths[widest] -= 1;
            }
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], colour: bool) -> String {
        let cells = row.iter().zip(&self.columns).zip(widths);
        let cells = cells.map(|((cell, column), width)| {
            let padding = " ".repeat(width.saturating_sub(cell.text.width()));
            let ink = cell.tone.ink();
            let text = match ink.filter(|_| colour && !cell.text.is_empty()) {
                Some(ink) => styled(&cell.text, ink.on_default()),
                None => cell.text.clone(),
            };
            match column.right {
                true => padding + &text,
                false => text + &padding,
            }
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        line.trim_end().to_owned()
    }
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

fn cut(text: &str, width: usize) -> String {
    let mut kept = text.to_owned();
    if kept.width() <= width {
        return kept;
    }
    while kept.width() + 1 > width && kept.pop().is_some() {}
    kept + "+"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Columns {
        let mut list = Columns::new(vec![
            Column::left("App").least(4),
            Column::right("Elapsed"),
            Column::left("Change").least(6),
        ]);
        list.row([
            Cell::new("checkpoint.sh"),
            Cell::new("1.06"),
            Cell::toned("cb_nodes=8 cb_buffer_size=67108864", Tone::Good),
        ]);
        list.row(["ocean", "12.50", "the \u{1b}[2J|default"]);
        list
    }

    #[test]
    fn a_list_is_whole_where_there_is_no_terminal_and_folded_to_fit_one() {
        assert_eq!(
            list().text(&Screen::plain()),
            "App            Elapsed  Change\n\
             -------------  -------  ----------------------------------\n\
             checkpoint.sh     1.06  cb_nodes=8 cb_buffer_size=67108864\n\
             ocean            12.50  the ?[2J|default\n"
        );
        assert_eq!(
            list().text(&Screen::wide(50)),
            "App            Elapsed  Change\n\
             -------------  -------  --------------------------\n\
             checkpoint.sh     1.06  cb_nodes=8\n\
             \u{20}                       cb_buffer_size=67108864\n\
             ocean            12.50  the ?[2J|default\n"
        );
        let narrow = list().text(&Screen::wide(30));
        assert!(narrow.lines().all(|line| line.width() <= 30), "{narrow}");
        assert_eq!(cut("\u{4e2d}\u{4e2d}\u{4e2d}", 4), "\u{4e2d}+");
    }

    #[test]
    fn words_with_which_all_changes_begin_are_said_once_where_there_is_no_room() {
        let mut list = Columns::new(vec![
            Column::right("Runs"),
            Column::left("Change").least(6).alike(),
        ]);
        list.row(["9", "cb_nodes=8 cb_buffer_size=67108864 ds_read=enable"]);
        list.row(["9", "the default"]);
        list.row(["9", "cb_nodes=8 cb_buffer_size=67108864"]);
        assert_eq!(
            list.text(&Screen::wide(50)),
            "Runs  Change\n\
             ----  ------------------\n\
             \u{20}  9  ... ds_read=enable\n\
             \u{20}  9  the default\n\
             \u{20}  9  ...\n\
             ... is cb_nodes=8 cb_buffer_size=67108864\n"
        );
        assert!(!list.text(&Screen::wide(80)).contains("..."));
        assert!(!list.parsable().contains("..."));
    }

    #[test]
    fn where_there_is_no_room_what_is_spare_is_left_out_before_words_are_broken() {
        let mut list = Columns::new(vec![
            Column::right("Runs"),
            Column::right("Failed").spare(2),
            Column::right("Cut").spare(1),
            Column::left("Change").least(6),
        ]);
        list.row(["9", "0", "0", "cb_nodes=8 cb_buffer_size=67108864"]);
        let header = |width| {
            let text = list.text(&Screen::wide(width));
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(header(80), "Runs  Failed  Cut  Change");
        assert_eq!(header(40), "Runs  Failed  Change");
        assert_eq!(header(30), "Runs  Change");
        assert!(list.parsable().starts_with("Runs|Failed|Cut|Change"));
    }

    #[test]
    fn only_a_terminal_has_colour_and_it_takes_no_room() {
        let screen = Screen {
            colour: true,
            ..Screen::wide(80)
        };
        let text = list().text(&screen);
        assert!(text.contains("\u{1b}[32mcb_nodes=8"), "{text:?}");
        assert!(!text.contains("\u{1b}[2J"), "{text:?}");
        assert!(!list().text(&Screen::wide(80)).contains('\u{1b}'));
    }

    #[test]
    fn programs_get_everything_and_a_bar_or_comma_in_a_value_is_none_between_them() {
        let list = list();
        let lines: Vec<String> = list.parsable().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "App|Elapsed|Change");
        assert_eq!(lines[2], "ocean|12.50|the ?[2J?default");
        let mut list = list;
        list.row(["a,b", "1", "say \"x\""]);
        let csv = list.csv().unwrap();
        assert!(csv.ends_with("\"a,b\",1,\"say \"\"x\"\"\"\n"), "{csv}");
        let bare = list.without_header(true).parsable();
        assert!(bare.starts_with("checkpoint.sh|"), "{bare}");
    }
}
