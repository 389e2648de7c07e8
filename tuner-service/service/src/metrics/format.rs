//! The format in which the metrics are written: OpenMetrics 1.0, or Prometheus' text format 0.0.4
//! for parsers that know no other.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Text,
}

impl Format {
    /// The format with the highest weight in the request. If both have the same, it is the text
    /// format if that alone is named, and otherwise OpenMetrics.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(ACCEPT).iter();
        let ranges: Vec<Range<'_>> = accepts
            .filter_map(|accept| accept.to_str().ok())
            .flat_map(|accept| accept.split(','))
            .filter_map(Range::parse)
            .collect();
        let weight = |format: Self| {
            let matching = ranges.iter().filter_map(|range| range.of(format));
            // The most specific range decides, whatever it weighs.
            matching.max_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)))
        };
        let [text, open] =
            [Self::Text, Self::OpenMetrics].map(|format| weight(format).unwrap_or((0, 0.0)));
        let only_text_is_named = text.0 >= NAMED && open.0 < NAMED && text.1 > 0.0;
        match text.1 > open.1 || (text.1 == open.1 && only_text_is_named) {
            true => Self::Text,
            false => Self::OpenMetrics,
        }
    }

    /// The content type of the format.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A text of OpenMetrics in this format.
    pub(super) fn of(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Text => as_text(&open_metrics),
        }
    }
}

/// How specific a media range is if it names a format, rather than a group of them or any.
const NAMED: u8 = 2;

/// A media range of an Accept header.
struct Range<'a> {
    media: &'a str,
    version: Option<&'a str>,
    weight: f64,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Range {
            media: parts.next().filter(|media| !media.is_empty())?,
            version: None,
            weight: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.weight = value.trim().parse().ok()?,
                "version" => range.version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        Some(range)
    }

    /// How specific the range is about a format that it includes, and its weight.
    fn of(&self, format: Format) -> Option<(u8, f64)> {
        let (media, group, versions) = match format {
            Format::OpenMetrics => (
                "application/openmetrics-text",
                "application/*",
                &["1.0.0", "0.0.1"][..],
            ),
            // This text is a part of version 1.0.0, as it has only the names of the older version.
            Format::Text => ("text/plain", "text/*", &["0.0.4", "1.0.0"][..]),
        };
        let specific = match self.media.to_ascii_lowercase().as_str() {
            one if one == media => match self.version {
                None => NAMED,
                Some(version) if versions.contains(&version) => NAMED + 1,
                Some(_) => return None,
            },
            one if one == group => 1,
            "*/*" => 0,
            _ => return None,
        };
        Some((specific, self.weight))
    }
}

/// Converts OpenMetrics 1.0 to the text format 0.0.4: a counter's family has the name of its
/// samples, and there are no units, no end mark and no info.
fn as_text(open_metrics: &str) -> String {
    let kinds: BTreeMap<&str, &str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let told = ["# HELP ", "# TYPE "]
            .into_iter()
            .find_map(|start| Some((start, line.strip_prefix(start)?)));
        match told {
            Some((start, rest)) => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let kind = kinds.get(name).copied().unwrap_or_default();
                let name = match kind {
                    "counter" => format!("{name}_total"),
                    "info" => format!("{name}_info"),
                    _ => name.to_owned(),
                };
                let rest = match (start, rest) {
                    ("# TYPE ", "info" | "stateset") => "gauge".to_owned(),
                    ("# TYPE ", "unknown") => "untyped".to_owned(),
                    ("# TYPE ", kind) => kind.to_owned(),
                    // Quotes stand for themselves.
                    (_, help) => help.replace("\\\"", "\""),
                };
                text.push_str(&format!("{start}{name} {rest}\n"));
            }
            None if line.starts_with('#') => {}
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn accepted(accept: &[&'static str]) -> Format {
        let mut headers = HeaderMap::new();
        for one in accept {
            headers.append(ACCEPT, HeaderValue::from_static(one));
        }
        Format::accepted(&headers)
    }

    #[test]
    fn who_accepts_text_alone_or_rather_gets_text() {
        for accept in [
            "text/plain;version=0.0.4",
            "text/plain; version=0.0.4; charset=utf-8",
            "TEXT/Plain;q=1",
            "text/*",
            "text/plain;q=0.5, application/openmetrics-text;q=0.4",
            "application/openmetrics-text;q=0, */*",
            "application/openmetrics-text;version=9.9, text/plain",
            "text/plain, */*",
            "text/plain;version=0.0.4;q=0.5, */*;q=0.5",
            "text/plain;version=1.0.0;escaping=allow-utf-8",
            "text/plain; version=\"0.0.4\"",
        ] {
            assert_eq!(accepted(&[accept]), Format::Text, "{accept}");
        }
        assert_eq!(accepted(&["application/json", "text/plain"]), Format::Text);
    }

    #[test]
    fn everyone_else_gets_openmetrics() {
        for accept in [
            "",
            "*/*",
            "application/openmetrics-text",
            "text/plain;version=9.9",
            "text/plain;q=0, */*;q=0",
            "text/plain, application/openmetrics-text",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json",
            // As Prometheus 2 and 3 ask.
            "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "text/plain;q=x",
        ] {
            assert_eq!(accepted(&[accept]), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(accepted(&[]), Format::OpenMetrics);
    }

    #[test]
    fn text_names_counters_as_their_samples_and_has_no_units_and_no_end() {
        let open_metrics = "# HELP a_requests Of \\\"all\\\".\n# TYPE a_requests counter\na_requests_total{x=\"#\"} 1\n\
            # HELP a_wait_seconds Longest.\n# TYPE a_wait_seconds gauge\n# UNIT a_wait_seconds seconds\n\
            a_wait_seconds 1.5\n# HELP a_build Version.\n# TYPE a_build info\na_build_info{v=\"1\"} 1\n# EOF\n";
        let text = "# HELP a_requests_total Of \"all\".\n# TYPE a_requests_total counter\na_requests_total{x=\"#\"} 1\n\
            # HELP a_wait_seconds Longest.\n# TYPE a_wait_seconds gauge\na_wait_seconds 1.5\n\
            # HELP a_build_info Version.\n# TYPE a_build_info gauge\na_build_info{v=\"1\"} 1\n";
        assert_eq!(Format::Text.of(open_metrics.to_owned()), text);
        assert_eq!(
            Format::OpenMetrics.of(open_metrics.to_owned()),
            open_metrics
        );
    }
}
