//! The CSV file of a data set.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use io_autotune_configuration::read_text;
use io_autotune_engine::{Parametrization, Point, Space, SpaceError, Value};
use io_autotune_optimize::SpaceFile;

use super::{DatasetError, Draw};

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Elapsed seconds of one run or, with `relative_sd`, the mean of several.
    pub elapsed: f64,
    /// The scatter of single runs around a row that is a mean: standard deviation over mean.
    pub relative_sd: Option<f64>,
}

/// A measured parametrization.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The configuration's point in the space.
    pub point: Point,
    /// The rows in the file's order; at least one.
    pub samples: Vec<Sample>,
    /// The mean of its rows, seconds: the truth.
    pub truth: f64,
    /// For each row the measures of [`SpaceFile::measures`].
    measures: Vec<Vec<f64>>,
}

/// A space with measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The space. Its default is measured: the file's, or else the nearest measured point.
    pub file: SpaceFile,
    /// True if the file's default was not measured and another point replaces it.
    pub default_moved: bool,
    configurations: Vec<Configuration>,
    places: HashMap<Point, usize>,
    default: usize,
    best: usize,
    slowest: f64,
}

impl Table {
    /// Reads the space's file, `NAME.toml` or `NAME.json`, and `NAME.csv`. Errs, with file, line and
    /// column, on bad files.
    pub fn read(space: &Path) -> Result<Self, DatasetError> {
        let path = space.with_extension("csv");
        if path == space {
            return Err(DatasetError::NotTheSpace { path });
        }
        let file = SpaceFile::read(space).map_err(Box::new)?;
        let text = read_text(&path).map_err(|error| DatasetError::unread(&path, error))?;
        Self::parse(file, &text, &path)
    }

    /// Reads a CSV file's text; `path` is for messages. Errs, with line and column, if it is wrong.
    pub fn parse(file: SpaceFile, csv: &str, path: &Path) -> Result<Self, DatasetError> {
        let configurations = Rows::new(&file, csv, path)?.read()?;
        let places: HashMap<Point, usize> = configurations
            .iter()
            .enumerate()
            .map(|(place, configuration)| (configuration.point.clone(), place))
            .collect();
        let empty = || DatasetError::Empty {
            path: path.to_owned(),
        };
        let best = first_least(configurations.iter().map(|c| c.truth)).ok_or_else(empty)?;
        let slowest = configurations.iter().map(|c| c.truth).fold(0.0, f64::max);
        let wanted = file.space.default_point();
        if let Some(default) = places.get(&wanted).copied() {
            return Ok(Table {
                file,
                default_moved: false,
                configurations,
                places,
                default,
                best,
                slowest,
            });
        }
        let distance = |c: &Configuration| file.space.distance(&c.point, &wanted);
        let default = first_least(configurations.iter().map(distance)).ok_or_else(empty)?;
        let moved = with_default(&file, &configurations[default].point);
        Ok(Table {
            file: moved.map_err(|error| DatasetError::Space {
                path: path.to_owned(),
                error,
            })?,
            default_moved: true,
            configurations,
            places,
            default,
            best,
            slowest,
        })
    }

    /// The table as if the best parametrization were faster than the default by at most this share:
    /// each one's ratio to the default is raised to the power that makes it so, and the best one
    /// stays the best.
    #[must_use]
    pub fn with_most_to_win(mut self, share: f64) -> Self {
        let (default, best) = (self.default().truth, self.best().truth);
        if best >= (1.0 - share) * default {
            return self;
        }
        let power = (1.0 - share).ln() / (best / default).ln();
        for one in &mut self.configurations {
            let factor = (one.truth / default).powf(power - 1.0);
            one.truth *= factor;
            for sample in &mut one.samples {
                sample.elapsed *= factor;
            }
        }
        self.slowest = self
            .configurations
            .iter()
            .map(|c| c.truth)
            .fold(0.0, f64::max);
        self
    }

    /// The table as if runs scattered by this many times as much: each row's ratio to its
    /// parametrization's mean is raised to that power, and the means stay.
    #[must_use]
    pub fn with_noise(mut self, factor: f64) -> Self {
        for one in &mut self.configurations {
            let ratio = |sample: &Sample| (sample.elapsed / one.truth).powf(factor);
            let mean = one.samples.iter().map(ratio).sum::<f64>() / one.samples.len() as f64;
            for sample in &mut one.samples {
                sample.elapsed = one.truth * (sample.elapsed / one.truth).powf(factor) / mean;
                sample.relative_sd = sample.relative_sd.map(|sd| sd * factor);
            }
        }
        self
    }

    /// The measured parametrizations, in the file's order.
    pub fn configurations(&self) -> &[Configuration] {
        &self.configurations
    }

    /// The place of a point in [`Table::configurations`]; none if it was not measured.
    pub fn place(&self, point: &Point) -> Option<usize> {
        self.places.get(point).copied()
    }

    /// The configuration with the lowest mean; the first of several.
    pub fn best(&self) -> &Configuration {
        &self.configurations[self.best]
    }

    /// The highest mean, seconds.
    pub fn slowest(&self) -> f64 {
        self.slowest
    }

    /// The configuration of the default.
    pub fn default(&self) -> &Configuration {
        &self.configurations[self.default]
    }

    /// The measures of the run that [`Table::draw`] gives: of the same row.
    pub fn measures(&self, place: usize, nth: u64, seed: u64) -> BTreeMap<String, f64> {
        let Some(configuration) = self.configurations.get(place) else {
            return BTreeMap::new();
        };
        let row = Draw::new(seed, place as u64, nth).row(configuration.samples.len());
        let of = configuration.measures.get(row).into_iter().flatten();
        let names = self.file.measures.iter().cloned();
        names.zip(of.copied()).collect()
    }

    /// A run's seconds: a row of the configuration, drawn with replacement; a row that is a mean is
    /// scattered by its `relative_sd`. `nth` is the number of earlier runs of the configuration. A
    /// pure function, see [`Draw`]. None if there is no such place.
    pub fn draw(&self, place: usize, nth: u64, seed: u64) -> Option<f64> {
        let samples = &self.configurations.get(place)?.samples;
        let draw = Draw::new(seed, place as u64, nth);
        let sample = samples.get(draw.row(samples.len()))?;
        let factor = sample.relative_sd.map_or(1.0, |sd| draw.factor(sd));
        Some(sample.elapsed * factor)
    }
}

fn first_least(numbers: impl Iterator<Item = f64>) -> Option<usize> {
    numbers
        .enumerate()
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(place, _)| place)
}

struct Rows<'a> {
    file: &'a SpaceFile,
    path: PathBuf,
    reader: csv::Reader<&'a [u8]>,
    /// The column of each parameter.
    parameters: Vec<usize>,
    time: usize,
    relative_sd: Option<usize>,
    /// The column of each measure.
    measures: Vec<usize>,
    /// A cache of parsed fields by parameter: most rows repeat them.
    levels: Vec<BTreeMap<String, u32>>,
}

impl<'a> Rows<'a> {
    fn new(file: &'a SpaceFile, text: &'a str, path: &Path) -> Result<Self, DatasetError> {
        let path = path.to_owned();
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let headers: Vec<String> = match reader.headers() {
            Ok(headers) => headers.iter().map(str::to_owned).collect(),
            Err(error) => return Err(DatasetError::Csv { path, error }),
        };
        if let Some(separator) = other_separator(&headers) {
            return Err(DatasetError::Separator { path, separator });
        }
        if let Some((column, problem)) = with_two_meanings(file, &headers) {
            return Err(DatasetError::TwoMeanings {
                path,
                column: column.to_owned(),
                problem,
            });
        }
        let column = |name: &str| headers.iter().position(|header| header == name);
        let needed = |name: &str| {
            column(name).ok_or_else(|| DatasetError::MissingColumn {
                path: path.clone(),
                column: name.to_owned(),
                found: headers.join(", "),
            })
        };
        let names = file.space.parameters().iter();
        Ok(Rows {
            parameters: names.map(|p| needed(&p.name)).collect::<Result<_, _>>()?,
            time: needed("time")?,
            relative_sd: column("rel_sd"),
            measures: file
                .measures
                .iter()
                .map(|name| needed(name))
                .collect::<Result<_, _>>()?,
            levels: vec![BTreeMap::new(); file.space.parameters().len()],
            file,
            path,
            reader,
        })
    }

    fn read(mut self) -> Result<Vec<Configuration>, DatasetError> {
        let file = self.file;
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut places: HashMap<Point, usize> = HashMap::new();
        let mut row = csv::StringRecord::new();
        loop {
            match self.reader.read_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    return Err(DatasetError::Csv {
                        path: self.path,
                        error,
                    });
                }
            }
            let point = self.point(&row)?;
            let elapsed = self.number(&row, "time", self.time, |time| time > 0.0)?;
            let relative_sd = self
                .relative_sd
                .map(|column| self.number(&row, "rel_sd", column, |sd| sd >= 0.0))
                .transpose()?;
            let columns = file.measures.iter().zip(self.measures.clone());
            let measures = columns
                .map(|(name, column)| self.number(&row, name, column, |number| number >= 0.0))
                .collect::<Result<_, _>>()?;
            let place = *places.entry(point).or_insert_with_key(|point| {
                configurations.push(Configuration {
                    point: point.clone(),
                    samples: Vec::new(),
                    truth: 0.0,
                    measures: Vec::new(),
                });
                configurations.len() - 1
            });
            configurations[place].samples.push(Sample {
                elapsed,
                relative_sd,
            });
            configurations[place].measures.push(measures);
        }
        for configuration in &mut configurations {
            let sum: f64 = configuration.samples.iter().map(|s| s.elapsed).sum();
            configuration.truth = sum / configuration.samples.len() as f64;
        }
        Ok(configurations)
    }

    fn point(&mut self, row: &csv::StringRecord) -> Result<Point, DatasetError> {
        let space = &self.file.space;
        let mut point = Vec::with_capacity(self.parameters.len());
        let mut absent = Vec::new();
        for (index, column) in self.parameters.clone().into_iter().enumerate() {
            let parameter = &space.parameters()[index];
            let text = row.get(column).unwrap_or_default();
            if let Some(level) = self.levels[index].get(text) {
                point.push(*level);
                continue;
            }
            let level = space
                .parse_value(&parameter.name, text)
                .ok()
                .or_else(|| truth_word(text))
                .and_then(|value| parameter.level_of(&value))
                .and_then(|level| u32::try_from(level).ok());
            match level {
                Some(level) => {
                    self.levels[index].insert(text.to_owned(), level);
                    point.push(level);
                }
                None if is_missing(text) && parameter.when.is_some() => {
                    absent.push(&parameter.name);
                    point.push(0);
                }
                None if is_missing(text) => {
                    let allowed = format!(
                        "{}, for the parameter always exists: fill it in, or give the parameter a `when`",
                        parameter.choices()
                    );
                    return Err(self.refuse(row, &parameter.name, text, allowed));
                }
                None => {
                    return Err(self.refuse(row, &parameter.name, text, parameter.choices()));
                }
            }
        }
        if space.is_whole_grid() {
            return Ok(Point(point));
        }
        // All fields of the row, even surplus ones: validation reports those.
        let levels = space.parameters().iter().zip(point);
        let values = levels
            .filter(|(parameter, _)| !absent.contains(&&parameter.name))
            .filter_map(|(parameter, level)| {
                let value = parameter.value_at(level as usize)?;
                Some((parameter.name.clone(), value))
            });
        space
            .validate(&Parametrization(values.collect()))
            .map_err(|error| DatasetError::Row {
                path: self.path.clone(),
                line: line(row),
                error: Box::new(error),
            })
    }

    fn number(
        &self,
        row: &csv::StringRecord,
        name: &str,
        column: usize,
        allowed: fn(f64) -> bool,
    ) -> Result<f64, DatasetError> {
        let text = row.get(column).unwrap_or_default();
        text.parse()
            .ok()
            .filter(|number: &f64| number.is_finite() && allowed(*number))
            .ok_or_else(|| {
                let words = match name {
                    "time" if is_missing(text) => {
                        "a number of seconds above 0: leave out rows without a time"
                    }
                    "time" => "a number of seconds above 0",
                    _ => "a number of 0 or more",
                };
                self.refuse(row, name, text, words.to_owned())
            })
    }

    fn refuse(
        &self,
        row: &csv::StringRecord,
        column: &str,
        value: &str,
        allowed: String,
    ) -> DatasetError {
        let allowed = match has_decimal_comma(value) {
            true => format!("{allowed}; a number has a decimal point, not a comma"),
            false => allowed,
        };
        DatasetError::Field {
            path: self.path.clone(),
            line: line(row),
            column: column.to_owned(),
            value: value.chars().take(64).collect(),
            allowed,
        }
    }
}

/// The file with another default.
fn with_default(file: &SpaceFile, default: &Point) -> Result<SpaceFile, SpaceError> {
    let values = file.space.parametrization(default).0;
    let mut parameters = file.space.parameters().to_vec();
    for parameter in &mut parameters {
        if let Some(value) = values.get(&parameter.name) {
            parameter.default = value.clone();
        }
    }
    let mut moved = file.clone();
    moved.space = Space::constrained(parameters, file.space.constraints().to_vec())?;
    Ok(moved)
}

/// The first line of a row, from 1.
fn line(row: &csv::StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

/// Python writes JSON's `true` and `false` as `True` and `False`, R as `TRUE` and `FALSE`.
fn truth_word(text: &str) -> Option<Value> {
    let word = text.to_ascii_lowercase();
    matches!(word.as_str(), "true" | "false").then_some(Value::Text(word))
}

/// Returns true for what R, pandas and spreadsheets write where there is no value.
fn is_missing(text: &str) -> bool {
    matches!(
        text,
        "" | "NA" | "<NA>" | "NaN" | "nan" | "None" | "NULL" | "null"
    )
}

/// Returns true if a field is a number with a decimal comma, `1,5`.
fn has_decimal_comma(text: &str) -> bool {
    text.contains(',') && text.replacen(',', ".", 1).parse::<f64>().is_ok()
}

/// Returns what separates the columns if commas do not: a table has at least two of them.
fn other_separator(headers: &[String]) -> Option<char> {
    let [only] = headers else { return None };
    [';', '\t', '|'].into_iter().find(|one| only.contains(*one))
}

/// The first column that would be read as two things, and what to do about it.
fn with_two_meanings<'a>(
    file: &'a SpaceFile,
    headers: &'a [String],
) -> Option<(&'a str, &'static str)> {
    let parameters = || file.space.parameters().iter().map(|p| p.name.as_str());
    let measures = || file.measures.iter().map(String::as_str);
    let is_reserved = |name: &&str| ["time", "rel_sd"].contains(name);
    if let Some(name) = parameters().find(is_reserved) {
        let problem = "it is a run's seconds or their scatter, and a parameter is called so: \
                       rename the parameter and its column";
        return Some((name, problem));
    }
    if let Some(name) =
        measures().find(|name| is_reserved(name) || parameters().any(|p| p == *name))
    {
        let problem = "it is a measure and something else too: rename the measure and its column";
        return Some((name, problem));
    }
    let is_used =
        |name: &str| is_reserved(&name) || parameters().chain(measures()).any(|used| used == name);
    let (_, twice) = headers
        .iter()
        .enumerate()
        .find(|(place, name)| is_used(name.as_str()) && headers[..*place].contains(name))?;
    Some((twice, "there are two of this name: rename or remove one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = r#"{"parameters": [
        {"name": "on", "kind": "categorical", "values": [true, false]},
        {"name": "size", "kind": "ordinal", "values": [1, 2, 4]}], "default": null}"#;

    fn table(space: &str, csv: &str) -> Result<Table, DatasetError> {
        let file = SpaceFile::parse(space, Path::new("t.json")).unwrap();
        Table::parse(file, csv, Path::new("t.csv"))
    }

    #[test]
    fn rows_are_grouped_by_point() {
        let csv = "size,rep,on,time,more\n4,0,True,10,x\n2.0,0,true,8,x\n4,1,true,20,x\n";
        let table = table(SPACE, csv).unwrap();
        let truths: Vec<f64> = table.configurations().iter().map(|c| c.truth).collect();
        assert_eq!(truths, [15.0, 8.0]);
        assert_eq!(table.place(&Point(vec![0, 2])), Some(0));
        assert_eq!(table.place(&Point(vec![1, 2])), None);
        assert_eq!(table.best().point, Point(vec![0, 1]));
        assert_eq!(table.default().point, Point(vec![0, 1]));
        assert!(!table.default_moved);
    }

    #[test]
    fn a_default_that_was_not_measured_moves_to_the_nearest_point() {
        let csv = "size,on,time\n1,false,10\n4,true,20\n";
        let table = table(SPACE, csv).unwrap();
        assert!(table.default_moved);
        assert_eq!(table.default().point, Point(vec![0, 2]));
        assert_eq!(table.file.space.default_point(), Point(vec![0, 2]));
    }

    #[test]
    fn a_space_whose_default_moves_keeps_its_constraints() {
        let space = SPACE.replace(
            r#""default": null"#,
            r#""default": null, "constraints": [{"forbid": {"on": [true], "size": [4]}}]"#,
        );
        let read = table(&space, "size,on,time\n1,false,10\n").unwrap();
        assert!(read.default_moved);
        assert_eq!(read.file.space.points(100).unwrap().len(), 5);
        assert_eq!(read.file.space.default_point(), Point(vec![1, 0]));
    }

    #[test]
    fn runs_are_drawn_from_the_rows() {
        let table = table(SPACE, "size,on,time\n1,true,10\n1,true,20\n2,true,5\n").unwrap();
        let draws: Vec<f64> = (0..64).filter_map(|nth| table.draw(0, nth, 9)).collect();
        assert_eq!(draws.len(), 64);
        let short = draws.iter().filter(|time| **time == 10.0).count();
        assert!((16..=48).contains(&short), "{short}");
        assert!(draws.iter().all(|time| *time == 10.0 || *time == 20.0));
        assert_eq!(table.draw(0, 3, 9), table.draw(0, 3, 9));
        assert_eq!(table.draw(2, 0, 9), None);
    }

    #[test]
    fn measures_are_those_of_the_drawn_row() {
        let space = r#"{"parameters": [{"name": "on", "kind": "categorical", "values": [true]}],
            "default": null, "measures": ["bytes", "calls"]}"#;
        let csv = "on,time,calls,bytes\ntrue,10,1,100\ntrue,20,2,200\n";
        let table = table(space, csv).unwrap();
        for nth in 0..20 {
            let time = table.draw(0, nth, 3).unwrap();
            let measures = table.measures(0, nth, 3);
            assert_eq!(measures["bytes"], 10.0 * time);
            assert_eq!(measures["calls"], time / 10.0);
        }
        assert!(table.measures(1, 0, 3).is_empty());
    }

    #[test]
    fn a_row_that_is_a_mean_scatters_around_it() {
        let table = table(SPACE, "size,on,time,rel_sd\n1,true,10,0.2\n2,true,5,0\n").unwrap();
        let draws: Vec<f64> = (0..10_000)
            .filter_map(|nth| table.draw(0, nth, 9))
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // Five standard errors.
        assert!((mean - 10.0).abs() < 0.1, "{mean}");
        assert!(draws[0] != draws[1]);
        assert_eq!(table.draw(1, 0, 9), Some(5.0));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (csv, words) in [
            (
                "size,time\n1,10\n",
                "t.csv, line 1: there is no column \"on\"",
            ),
            ("size,on\n1,true\n", "no column \"time\""),
            ("size,on,time\n", "no row"),
            (
                "size,on,time\n1,true,10\n3,true,10\n",
                "line 3, column \"size\": \"3\"",
            ),
            ("size,on,time\n1,yes,10\n", "one of true, false"),
            ("size,on,time\n1,true,0\n", "line 2, column \"time\": \"0\""),
            (
                "size,on,time\n1,true,NaN\n",
                "leave out rows without a time",
            ),
            ("size,on,time\n1,true,inf\n", "seconds above 0"),
            ("size,on,time\n1,T,1\n", "one of true, false"),
            ("size,on,time,rel_sd\n1,true,1,-1\n", "column \"rel_sd\""),
            ("size,on,time\n1,true\n", "line: 2"),
        ] {
            let message = table(SPACE, csv).unwrap_err().to_string();
            assert!(message.contains(words), "{csv:?}: {message}");
        }
    }

    /// In each case the other reading was taken, and nothing said.
    #[test]
    fn a_column_has_one_meaning() {
        let space = |name: &str, measures: &str| {
            format!(
                r#"{{"parameters": [{{"name": "{name}", "kind": "int", "values": [1, 2]}}], "measures": {measures}}}"#
            )
        };
        for (space, csv, words) in [
            (space("time", "[]"), "time\n1\n2\n", "rename the parameter"),
            (
                space("rel_sd", "[]"),
                "rel_sd,time\n1,2\n",
                "rename the parameter",
            ),
            (
                space("a", r#"["time"]"#),
                "a,time\n1,2\n",
                "rename the measure",
            ),
            (
                space("a", r#"["a"]"#),
                "a,time\n1,2\n",
                "rename the measure",
            ),
            (
                space("a", "[]"),
                "a,time,a\n1,2,2\n",
                "\"a\": there are two",
            ),
            (
                space("a", "[]"),
                "a,time,time\n1,2,2\n",
                "\"time\": there are two",
            ),
        ] {
            let message = table(&space, csv).unwrap_err().to_string();
            assert!(message.starts_with("t.csv, line 1"), "{message}");
            assert!(message.contains(words), "{csv:?}: {message}");
        }
        assert!(table(&space("a", "[]"), "a,note,time,note\n1,x,2,y\n").is_ok());
        // Outside a table seconds are told, and a parameter may be called so.
        let file = SpaceFile::parse(&space("time", "[]"), Path::new("t.json"));
        assert!(file.is_ok(), "{file:?}");
    }

    /// The error names what a file is, whatever its columns are for, and what cures it.
    #[test]
    fn other_encodings_and_separators_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let space = directory.path().join("t.json");
        std::fs::write(&space, SPACE).unwrap();
        let of_bytes = |csv: &[u8]| {
            std::fs::write(space.with_extension("csv"), csv).unwrap();
            Table::read(&space).map_err(|error| error.to_string())
        };
        assert!(of_bytes(b"\xef\xbb\xbfsize,on,time\r\n1,true,10\r\n").is_ok());
        for (csv, line) in [
            (b"size,on,Gr\xf6\xdfe,time\n1,true,x,10\n".as_slice(), 1),
            (
                b"size,on,where,time\r\n1,true,x,10\r\n1,true,Z\xfcrich,10\r\n",
                3,
            ),
            (b"size,on,time\n1,tr\xfce,10\n", 2),
        ] {
            let message = of_bytes(csv).unwrap_err();
            assert!(
                message.contains(&format!("t.csv: line {line} is not in UTF-8")),
                "{message}"
            );
            assert!(message.contains("iconv"), "{message}");
        }
        let utf16 = "size,on,time\n1,true,10\n".encode_utf16();
        let utf16: Vec<u8> = utf16.flat_map(u16::to_le_bytes).collect();
        for mark in [b"\xff\xfe".as_slice(), b""] {
            let message = of_bytes(&[mark, &utf16].concat()).unwrap_err();
            assert!(message.contains("t.csv: it is in UTF-16"), "{message}");
        }
        for (csv, separator) in [
            ("size;on;time\n1;true;10,5\n", "';'"),
            ("sep=;\nsize;on;time\n1;true;10,5\n", "';'"),
            ("size\ton\ttime\n1\ttrue\t10\n", "tabs"),
        ] {
            let message = of_bytes(csv.as_bytes()).unwrap_err();
            assert!(
                message.contains(&format!("separated by {separator}")),
                "{message}"
            );
            assert!(message.contains("decimal point"), "{message}");
        }
        let message = of_bytes(b"size,on,time\n1,true,\"10,5\"\n").unwrap_err();
        assert!(
            message.contains("line 2, column \"time\": \"10,5\""),
            "{message}"
        );
        assert!(
            message.contains("a decimal point, not a comma"),
            "{message}"
        );
        let message = of_bytes(b"size,on,time\n1,true,10,5\n").unwrap_err();
        assert!(
            message.contains("line: 2") && message.contains("decimal point"),
            "{message}"
        );
        let message = Table::read(&space.with_extension("csv")).unwrap_err();
        assert!(message.to_string().contains("t.toml or /"), "{message}");
    }

    #[test]
    fn what_r_and_python_write_is_read() {
        for truth in ["true", "True", "TRUE"] {
            let csv = format!(
                "\"\",\"size\",\"on\",\"time\"\n\"1\",1e+00,{truth},1e+01\n\"2\",2,FALSE,20\n"
            );
            assert_eq!(table(SPACE, &csv).unwrap().best().point, Point(vec![0, 0]));
        }
    }

    #[test]
    fn what_does_not_exist_is_empty() {
        let space = r#"{"parameters": [
            {"name": "cache", "kind": "categorical", "values": [false, true]},
            {"name": "size", "kind": "int", "values": [1, 2],
             "when": {"parameter": "cache", "is": [true]}},
            {"name": "nodes", "kind": "int", "values": [1, 2]}],
            "default": {"cache": false, "size": 2, "nodes": 1},
            "constraints": [{"left": "size", "op": "<=", "right": "nodes"}]}"#;
        let csv = "cache,size,nodes,time\nFalse,,1,10\nTrue,2,2,8\nFALSE,NA,1,20\nFALSE,NaN,1,15\n";
        let read = table(space, csv).unwrap();
        let points: Vec<&Point> = read.configurations().iter().map(|c| &c.point).collect();
        assert_eq!(points, [&Point(vec![0, 1, 0]), &Point(vec![1, 1, 1])]);
        assert_eq!((read.default().truth, read.default_moved), (15.0, false));
        for (row, words) in [
            ("False,2,1", "line 2: parameter size does not exist"),
            ("True,,1", "size"),
            ("True,2,1", "line 2: "),
            (",1,1", "column \"cache\""),
            ("False,,NA", "always exists"),
        ] {
            let message = table(space, &format!("cache,size,nodes,time\n{row},10\n"));
            let message = message.unwrap_err().to_string();
            assert!(message.contains(words), "{row}: {message}");
        }
    }

    #[test]
    fn the_csv_lies_beside_the_json() {
        let directory = tempfile::tempdir().unwrap();
        let json = directory.path().join("small.json");
        std::fs::write(&json, SPACE).unwrap();
        let error = Table::read(&json).unwrap_err().to_string();
        assert!(error.contains("small.csv"), "{error}");
        std::fs::write(json.with_extension("csv"), "size,on,time\n1,true,10\n").unwrap();
        let table = Table::read(&json).unwrap();
        assert_eq!(table.file.name, "small");
    }
}
