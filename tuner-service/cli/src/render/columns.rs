//! Lists, one line a row, in columns that fit the terminal.

use anstyle::{AnsiColor, Style};
use io_autotune_protocol::shown;
use unicode_width::UnicodeWidthStr;

use super::markup::escaped;
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
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    right: bool,
    /// The width that the user wants, whatever the terminal's.
    width: Option<usize>,
    /// The least width to which it may be cut; `None`: it is never cut.
    least: Option<usize>,
    /// The order in which columns are left out if there is no room, the lowest number first;
    /// `None`: never.
    spare: Option<u8>,
}

impl Column {
    pub(crate) fn left(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            right: false,
            width: None,
            least: None,
            spare: None,
        }
    }

    pub(crate) fn right(name: &str) -> Self {
        Self {
            right: true,
            ..Self::left(name)
        }
    }

    /// A column as `--format` asks for it.
    pub(crate) fn of(wanted: &Wanted) -> Self {
        let Wanted { field, width } = wanted;
        let column = match field.right {
            true => Self::right(field.name),
            false => Self::left(field.name),
        };
        match (width, field.least) {
            (Some((width, right)), _) => column.fixed(*width, *right),
            (None, Some(least)) => column.least(least),
            (None, None) => column,
        }
    }

    /// The column with a least width to which it may be cut.
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

    /// The column with the width that a `--format` gives: `%20` for text on the right, `%-20` on
    /// the left.
    pub(crate) fn fixed(self, width: usize, right: bool) -> Self {
        Self {
            width: Some(width),
            right,
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

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The header, a rule below it, and one line for each row. Text that is cut ends in `+`, as in
    /// sacct.
    pub(crate) fn text(&self, screen: &Screen) -> String {
        match self.without_spare(screen.width) {
            Some(narrower) => narrower.text(screen),
            None => self.fitted(screen),
        }
    }

    /// The list without its least useful column, if there is no room for it.
    fn without_spare(&self, most: Option<usize>) -> Option<Self> {
        // The least widths, but no less than can be read.
        let readable = |(column, width): (&Column, usize)| {
            let cut = column.least.map(|least| least.max(READABLE));
            cut.map_or(width, |cut| cut.min(width))
        };
        let all = self.columns.iter().zip(self.widths(None));
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        if all.map(readable).sum::<usize>() + gaps <= most? {
            return None;
        }
        let spare = self.columns.iter().enumerate();
        let spare = spare.filter_map(|(place, column)| Some((column.spare?, place)));
        let (_, place) = spare.min()?;
        let mut narrower = self.clone();
        narrower.columns.remove(place);
        for row in &mut narrower.rows {
            row.remove(place);
        }
        Some(narrower)
    }

    fn fitted(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.width);
        let mut text = String::new();
        if self.header {
            let names = self
                .columns
                .iter()
                .map(|column| Cell::new(column.name.clone()));
            let header = self.line(&names.collect::<Vec<_>>(), &widths, false);
            text.push_str(&match screen.colour {
                true => styled(&header, Style::new().bold()),
                false => header,
            });
            text.push('\n');
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&rules.join(GAP));
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&self.line(row, &widths, screen.colour));
            text.push('\n');
        }
        text
    }

    /// `sacct --parsable2`: names and values with `|` between them, nothing cut.
    pub(crate) fn parsable(&self) -> String {
        let mut text = String::new();
        if self.header {
            let names: Vec<&str> = self.columns.iter().map(|one| one.name.as_str()).collect();
            text.push_str(&names.join("|"));
            text.push('\n');
        }
        for row in &self.rows {
            // A value with a bar would look like two values.
            let values: Vec<_> = row.iter().map(|cell| cell.text.replace('|', "?")).collect();
            text.push_str(&values.join("|"));
            text.push('\n');
        }
        text
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

    /// The list as a table of a page, with nothing cut.
    pub(crate) fn html(&self) -> String {
        let side = |column: &Column| {
            if column.right {
                " class=\"number\""
            } else {
                ""
            }
        };
        let mut html = String::from("<div class=\"wide\"><table>\n<thead><tr>");
        for column in &self.columns {
            let name = escaped(&column.name);
            html.push_str(&format!("<th scope=\"col\"{}>{name}</th>", side(column)));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (cell, column) in row.iter().zip(&self.columns) {
                let text = escaped(&cell.text);
                let text = match cell.tone {
                    Tone::Plain => text,
                    Tone::Good => format!("<span class=\"good\">{text}</span>"),
                    Tone::Bad => format!("<span class=\"bad\">{text}</span>"),
                    Tone::Notable => format!("<span class=\"notable\">{text}</span>"),
                };
                html.push_str(&format!("<td{}>{text}</td>", side(column)));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
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
        // The widest column that may be cut loses one character after the other.
        while widths.iter().sum::<usize>() + gaps > most {
            let places = self.columns.iter().enumerate().filter(|(place, column)| {
                column.width.is_none() && column.least.is_some_and(|least| widths[*place] > least)
            });
            let Some((widest, _)) = places.max_by_key(|(place, _)| widths[*place]) else {
                break;
            };
            widths[widest] -= 1;
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], colour: bool) -> String {
        let mut line = String::new();
        let last = row.len().saturating_sub(1);
        for (place, ((cell, column), width)) in
            row.iter().zip(&self.columns).zip(widths).enumerate()
        {
            let text = cut(&cell.text, *width);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            let style = match cell.tone {
                Tone::Plain => None,
                Tone::Good => Some(AnsiColor::Green),
                Tone::Bad => Some(AnsiColor::Red),
                Tone::Notable => Some(AnsiColor::Yellow),
            };
            let text = match style.filter(|_| colour) {
                Some(ink) => styled(&text, ink.on_default()),
                None => text,
            };
            if column.right {
                line.push_str(&padding);
                line.push_str(&text);
            } else {
                line.push_str(&text);
                if place < last {
                    line.push_str(&padding);
                }
            }
            if place < last {
                line.push_str(GAP);
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        let mut longer = kept.clone();
        longer.push(c);
        if longer.width() + 1 > width {
            break;
        }
        kept = longer;
    }
    if width > 0 {
        kept.push('+');
    }
    kept
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
    fn a_list_is_whole_where_there_is_no_terminal_and_fits_one() {
        assert_eq!(
            list().text(&Screen::plain()),
            "App            Elapsed  Change\n\
             -------------  -------  ----------------------------------\n\
             checkpoint.sh     1.06  cb_nodes=8 cb_buffer_size=67108864\n\
             ocean            12.50  the ?[2J|default\n"
        );
        let narrow = list().text(&Screen::wide(40));
        assert!(narrow.lines().all(|line| line.width() <= 40), "{narrow}");
        assert!(narrow.contains("cb_nodes=8 cb_b"), "{narrow}");
        assert!(narrow.contains('+'), "{narrow}");
        assert_eq!(cut("\u{4e2d}\u{4e2d}\u{4e2d}", 4), "\u{4e2d}+");
    }

    #[test]
    fn where_there_is_no_room_what_is_spare_is_left_out_before_the_rest_is_cut() {
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
        assert_eq!(header(35), "Runs  Failed  Change");
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
