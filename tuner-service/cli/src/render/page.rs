//! Studies as a self-contained page of HTML, with the texts of `status`, `show` and `history`.

use io_autotune_protocol::{RunSummary, StudyDetail};

use super::history::{self, How};
use super::markup::escaped;
use super::{show, status};
use crate::screen::Screen;

/// The number of columns of the plot.
const PLOT: usize = 100;

/// The content policy: nothing is fetched, and nothing runs.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fcfcfb; --ink: #1b1f24; --muted: #565e68; --rule: #d9dcdf;
  --good: #0a5ca3; --bad: #a3261a; --notable: #8a4a00; --link: #0a5ca3; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171a; --ink: #e7e9eb; --muted: #a6aeb7; --rule: #353b42; --good: #74b7f5; --bad: #ff9286;
    --notable: #f0a35a; --link: #8cc4f8; } }
body { margin: 0 auto; max-width: 1200px; padding: 0 24px 48px; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
a { color: var(--link); }
.muted { color: var(--muted); }
section { border-top: 1px solid var(--rule); margin-top: 32px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9em; }
th, td { padding: 3px 16px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { color: var(--muted); font-weight: 600; }
.number { text-align: right; }
.good { color: var(--good); } .bad { color: var(--bad); } .notable { color: var(--notable); }
pre { font-family: ui-monospace, monospace; font-size: .85em; overflow-x: auto; }
pre.said { white-space: pre-wrap; }
@media print { .wide, pre { overflow: visible; } }
";

/// A study with its newest runs, oldest first.
pub(crate) struct Shown {
    pub(crate) detail: StudyDetail,
    pub(crate) runs: Vec<RunSummary>,
}

/// The page about a user's studies.
pub(crate) fn page(user: &str, studies: &[Shown], screen: &Screen) -> String {
    let title = format!("io-autotune: the studies of {}", escaped(user));
    let made = escaped(&screen.exact(screen.now));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"muted\">As of {made}, by <code>io-autotune report --mine</code>: what status, show and \
         history say. Times are local.</p>\n"
    );
    if studies.is_empty() {
        html.push_str(&format!(
            "<p>{}</p>\n",
            escaped(status::studies(&[], screen).trim())
        ));
    } else {
        let summaries: Vec<_> = studies.iter().map(|one| one.detail.study.clone()).collect();
        html.push_str(&status::columns(&summaries).html());
        html.push_str("<nav aria-label=\"Studies\"><p>");
        let links = studies.iter().map(|one| {
            let study = &one.detail.study;
            format!(
                "<a href=\"#study-{0}\">{1}, {2} ({0})</a>",
                study.study_id,
                escaped(&study.application_called()),
                escaped(&study.accelerator)
            )
        });
        html.push_str(&links.collect::<Vec<_>>().join(" \u{b7} "));
        html.push_str("</p></nav>\n");
    }
    for one in studies {
        html.push_str(&section(one, screen));
    }
    html.push_str("</body>\n</html>\n");
    html
}

fn section(Shown { detail, runs }: &Shown, screen: &Screen) -> String {
    let study = &detail.study;
    let mut html = format!(
        "<section id=\"study-{}\">\n<h2>{}</h2>\n<pre class=\"said\">{}</pre>\n",
        study.study_id,
        escaped(&study.application_called()),
        escaped(&status::study(study, screen))
    );
    if let Some(plot) = show::plot(detail, runs, PLOT) {
        html.push_str(&format!(
            "<h3>How it converged</h3>\n<pre>{}</pre>\n",
            escaped(&plot)
        ));
    }
    html.push_str(&format!(
        "<h3>What may vary: {} sets of values</h3>\n{}",
        detail.size,
        show::space(detail).html()
    ));
    let tested = show::tested(detail, usize::MAX);
    if !tested.is_empty() {
        html.push_str(&format!(
            "<h3>Tested, the quickest first; below them those of one run, which says little</h3>\n{}",
            tested.html()
        ));
    }
    if !runs.is_empty() {
        let how = How {
            screen,
            exact: false,
        };
        html.push_str(&format!(
            "<h3>The newest runs</h3>\n{}",
            history::columns(runs, None, how).html()
        ));
        let notes = history::notes(runs, screen);
        if !notes.is_empty() {
            html.push_str(&format!("<pre class=\"said\">{}</pre>\n", escaped(&notes)));
        }
    }
    html.push_str("</section>\n");
    html
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A study of an application whose name is an attack.
    fn study(application: &str) -> Shown {
        let detail = serde_json::from_value(json!({
            "study": {
                "study_id": 7, "application": application, "uid": 1000, "user": "io-alice",
                "accelerator": "romio", "context": { "nodes": "<i>2</i>" }, "epoch": 1,
                "opened": { "at": "2026-11-24T08:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
                "phase": "search", "counted": 5, "not_counted": 1, "in_flight": 0, "explored": [3, 20],
                "default": { "n": 2, "mean": 10.0, "interval": [9.0, 11.0] },
                "control": null, "tuned": null, "gain": null, "recommended": null, "differs": {},
                "why": "it & none \u{202e}other", "pin": null, "warnings": ["look at \"this\""]
            },
            "space": [{ "name": "cb_nodes", "kind": "integer", "min": 1, "max": 8, "default": 1 }],
            "size": 8,
            "tested": []
        }));
        Shown {
            detail: detail.unwrap(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn a_page_has_the_terminal_s_words_and_needs_nothing_else() {
        let screen = Screen::plain();
        let shown = study("ocean");
        let html = page("io-alice", std::slice::from_ref(&shown), &screen);
        for line in status::study(&shown.detail.study, &screen).lines() {
            assert!(html.contains(&escaped(line)), "{line}");
        }
        assert!(html.contains("<h2>ocean</h2>") && html.contains("href=\"#study-7\""));
        assert!(html.contains("prefers-color-scheme: dark"));
        for foreign in ["<script", "http:", "https:", "url(", "@import", "src="] {
            assert!(!html.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn names_are_text_and_no_markup() {
        let evil = "</pre><script>alert(1)</script>\"'&";
        let html = page("<b>", &[study(evil)], &Screen::plain());
        assert!(!html.contains("<script>") && !html.contains("<b>") && !html.contains("<i>"));
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
        assert!(!html.contains('\u{202e}'));
        // Every element that is opened is closed, in this order.
        let mut open: Vec<&str> = Vec::new();
        for tag in html.split('<').skip(1) {
            let tag = &tag[..tag.find('>').unwrap()];
            let name = tag.split(' ').next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if matches!(name, "!DOCTYPE" | "meta") => {}
                None => open.push(name),
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }

    #[test]
    fn who_has_no_studies_is_told_how_to_begin() {
        let html = page("io-bob", &[], &Screen::plain());
        assert!(html.contains("sbatch --io-autotune"));
    }
}
