"""The page's markup, without a browser: whole, harmless, bounded."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sample_report
import screenshots
from io_autotune_report.document import Night, NodeHours
from io_autotune_report.render import page
from io_autotune_report.render.page import selection, svg, view, words
from io_autotune_report.render.page.environment import with_code
from io_autotune_report.render.page.figures import inside_job, site

VOID = {"meta", "link", "br", "input", "img"}
CSS = Path(page.__file__).with_name("assets") / "page.css"


class Outline(HTMLParser):
    """Elements with their attributes, and the text; fails on tags that do not nest."""

    def __init__(self, html: str) -> None:
        """Reads a whole page."""
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Sees that it closes what was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collects text."""
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def html() -> str:
    return page.render(sample_report.report(), index="../index.html")


@pytest.fixture(scope="module")
def outline(html: str) -> Outline:
    return Outline(html)


def test_the_same_report_makes_the_same_page(html: str) -> None:
    assert html == page.render(sample_report.report(), index="../index.html")


def test_the_pictures_in_the_documentation_are_of_this_page() -> None:
    images = Path(__file__).resolve().parents[3] / "docs" / "images"
    kept = (images / screenshots.SHOWN).read_text("utf-8")
    assert kept == screenshots.digest(screenshots.sample()), "make pictures"


def test_the_total_comes_first(outline: Outline) -> None:
    places = [
        outline.text.index(heading)
        for heading in (
            "node-hours saved",
            "What changed since",
            "Regression",
            "Accelerators",
            "Users",
            "Study by study",
        )
    ]
    assert places == sorted(places)


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    allowed = policy[1].replace("&#39;", "'")
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in allowed
    assert allowed.startswith("default-src 'none';")
    assert "unsafe" not in allowed
    assert "http" not in allowed


def test_nothing_carries_what_the_policy_refuses(outline: Outline) -> None:
    for _, attributes in outline.elements:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]


def test_names_are_text_and_never_markup(outline: Outline) -> None:
    """Attack (environment): A name in the nightly report is markup, or an attribute that acts.
    Outcome: The page shows it as text.
    """
    assert len(outline.named("script")) == 1
    assert outline.named("img") == []
    assert sample_report.HOSTILE in outline.text
    assert sample_report.HOSTILE_ATTRIBUTE in outline.text
    assert "\u202e" not in outline.text


def test_budgets_for_exploring_stand_with_what_was_saved_and_only_where_there_are_some() -> None:
    whole = sample_report.report()
    text = Outline(page.render(whole)).text
    assert "Budgets for exploring" in text
    assert "account climate" in " ".join(text.split())
    none = replace(whole, exploring=[])
    assert "Budgets for exploring" not in Outline(page.render(none)).text


def test_a_default_for_everybody_is_proposed_with_who_would_lose() -> None:
    whole = sample_report.report()
    text = " ".join(Outline(page.render(whole)).text.split())
    proposal = "Make cb_nodes=8 romio_cb_write=enable the site's default: 11 of 14 studies gain."
    assert proposal in text
    loser = whole.studies[3].application
    assert f"Expected to lose: {words.plain(loser)} (3.1 % more time)." in text
    assert 'io-autotune accelerators site-default romio --apply --why "..."' in text
    # What is in force is no proposal.
    assert "The site's default is max_rpcs_in_flight=16." in text
    assert "site-default lustre-client --apply" not in text
    none = replace(whole, site_defaults=[])
    assert "A default for everybody" not in Outline(page.render(none)).text


def test_months_and_quarters_are_what_the_total_grew_by() -> None:
    nights = [
        ("2026-03-30", 4.0),
        ("2026-03-31", 5.0),
        ("2026-04-30", 25.0),
        ("2026-07-01", math.nan),
        ("2026-07-02", 22.0),
    ]
    months, quarters = view.periods(nights)
    assert months == (
        "Month",
        [
            view.Period("July\u00a02026", -3.0),
            view.Period("April\u00a02026", 20.0),
            view.Period("until March\u00a02026", 5.0, whole=False),
        ],
    )
    assert [(row.label, row.saved) for row in quarters[1]] == [
        ("Q3\u00a02026", -3.0),
        ("Q2\u00a02026", 20.0),
        ("until Q1\u00a02026", 5.0),
    ]
    assert view.periods(nights[:2]) == [], "one month is the total"
    decades = [(f"{year}-{month:02}-28", 0.0) for year in (2024, 2025) for month in range(1, 13)]
    assert len(view.periods(decades)[0][1]) == view.MOST_PERIODS


def test_what_was_saved_is_a_share_of_what_the_defaults_would_have_used() -> None:
    hours = sample_report.report().total.node_hours
    assert view.share_saved(replace(hours, used=80.0, saved=20.0)) == 0.2
    assert view.share_saved(replace(hours, used=125.0, saved=-25.0)) == -0.25
    for used, saved in ((80.0, None), (80.0, math.nan), (0.0, 0.0)):
        assert view.share_saved(replace(hours, used=used, saved=saved)) is None


def test_those_that_saved_most_have_a_claim() -> None:
    whole = sample_report.report()
    savers = selection.savers(whole)
    saved = [study.node_hours.saved or 0.0 for study in savers]
    assert 1 < len(savers) <= selection.SAVERS
    assert saved == sorted(saved, reverse=True)
    assert {study.gain.verdict for study in savers} == {"faster"}


def test_what_asks_nothing_of_anybody_has_no_card(outline: Outline) -> None:
    text = " ".join(outline.text.split())
    cards, notes = text.split("things that tuning has dealt with by itself")
    assert "Regression" in cards
    assert "Quarantine" not in cards
    assert "Quarantine" in notes
    assert "Quiet" in notes


def test_what_an_application_is_called_in_full_stands_beside_its_name() -> None:
    whole = sample_report.report()
    first = replace(
        whole.studies[0], application="calc_~cfe40eec2f", full_name="calc_модель\x1b\u202e<b>"
    )
    text = Outline(page.render(replace(whole, studies=[first, *whole.studies[1:]]))).text
    assert text.count("calc_модель") >= 2, "in the table and with the details"
    assert "<b>" in text, "it is text and never markup"
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_an_id_is_given_once(outline: Outline) -> None:
    ids = Counter(attributes["id"] for _, attributes in outline.elements if "id" in attributes)
    assert [name for name, number in ids.items() if number > 1] == []


def test_what_is_referred_to_is_there(outline: Outline) -> None:
    ids = {attributes.get("id") for _, attributes in outline.elements}
    for _, attributes in outline.elements:
        for name in ("aria-labelledby", "aria-describedby", "data-copy"):
            for reference in (attributes.get(name) or "").split():
                assert reference in ids
        target = attributes.get("href") or ""
        assert not target.startswith("#") or target[1:] in ids


def test_every_figure_has_a_text_alternative(outline: Outline) -> None:
    figures = outline.named("svg")
    assert len(figures) > 50
    for figure in figures:
        assert figure["role"] == "img"
        assert figure.get("aria-label") or (
            figure.get("aria-labelledby") and figure.get("aria-describedby")
        )


def test_every_verdict_is_there_in_words(outline: Outline) -> None:
    for word in words.VERDICTS.values():
        assert word in outline.text


def test_every_study_has_its_details_and_its_parametrization_to_copy(html: str) -> None:
    for study in sample_report.report().studies:
        assert f'<details class="study" id="study-{study.study_id}">' in html
    copied = re.findall(r'<pre id="chosen-(\d+)".*?<code>(.*?)</code>', html)
    assert {int(number) for number, _ in copied} == {1, 2, 3, 4, 5, 7, 11}


def test_a_gain_is_in_bold_only_beside_its_interval(html: str) -> None:
    cells = re.findall(r'<td class="number gain"[^>]*>(.*?)</td>', html)
    claims = [cell for cell in cells if "<b>" in cell]
    assert claims
    for cell in claims:
        assert re.search(r"<b>\S+ %</b> <small>\S+ to \S+ %</small>", cell.replace(words.NBSP, " "))


def test_a_card_says_whose_study_it_is_about() -> None:
    whole = sample_report.report()
    text = Outline(page.render(whole)).text
    for finding in selection.findings(whole, asking=True).shown:
        (about,) = (study for study in whole.studies if study.study_id == finding.study_id)
        begins = text.index(Outline(with_code(finding.what)).text)
        card = text[begins - 400 : begins]
        assert f"of {words.plain(about.user)}, " in card
        assert words.context(about) in card


def test_the_column_of_node_time_adds_up_to_the_total() -> None:
    whole = sample_report.report()
    early = NodeHours(40.0, None, None, None, None, 12.5, None, None)
    html = page.render(
        replace(whole, studies=[replace(whole.studies[0], node_hours=early), *whole.studies[1:]])
    )
    table = html[html.index('<table class="studies"') :]
    cells = re.findall(r'<td class="number" data-v="(-?[\d.]+)">[^<]*node-', table)
    in_column = [float(value) for value in cells[::2]][: len(whole.studies)]
    assert -12.5 in in_column, "what exploring took, before anything can be compared"


def test_the_total_says_what_it_cost_and_how_sure_it_is(outline: Outline) -> None:
    total = sample_report.report().total.node_hours
    cost = view.cost(total)
    assert cost is not None
    facts = outline.text[: outline.text.index("What changed since")]
    assert f"net cost of exploring and comparing{words.node_time(cost)}" in facts
    assert f"{words.level(0.95)} sure, however often one looks" in facts
    nothing = sample_report.empty().total.node_hours
    assert view.cost(nothing) is None


def test_what_changed_is_since_a_night_or_there_is_none_to_compare_with() -> None:
    quiet = replace(sample_report.report(), changes=[])
    assert "There is no earlier night to compare with." in page.render(quiet)
    after = page.render(replace(quiet, before="2026-11-13"))
    assert f"What changed since 13{words.NBSP}November{words.NBSP}2026" in after
    assert "Nothing: no study began" in after


def test_who_saved_and_who_lost_are_told_apart() -> None:
    whole = sample_report.report()
    claimed = view.by_claim(whole)
    assert claimed is not None
    number, theirs, others = claimed
    assert number == sum(study.gain.verdict == "faster" for study in whole.studies)
    saved = whole.total.node_hours.saved
    assert saved is not None
    assert theirs + others == pytest.approx(saved)
    assert view.by_claim(sample_report.empty()) is None


def test_the_nights_are_drawn_at_their_days() -> None:
    nights = [("2026-11-01", 1.0), ("2026-11-08", 2.0), ("2026-11-09", 3.0)]
    drawn = site.history(nights)
    assert drawn is not None
    (line,) = re.findall(r'd="M([^"]*)" class="line tuned"', str(drawn))
    x = [float(point.split()[0]) for point in line.split("L")]
    assert (x[1] - x[0]) / (x[2] - x[1]) == pytest.approx(7.0, rel=0.02)


def test_what_nothing_is_compared_of_yet_is_told_by_what_exploring_took() -> None:
    nothing = NodeHours(40.0, None, None, None, None, None, None, None)
    assert words.saved_sentence(nothing) == "Nothing can be compared with the default yet."
    for exploring, did in ((2.0, "cost 2.0"), (-2.0, "saved 2.0")):
        said = words.saved_sentence(replace(nothing, exploring=exploring))
        assert f"Exploring has {did}{words.NBSP}node-hours" in said


def test_a_site_without_runs_has_a_page() -> None:
    outline = Outline(page.render(sample_report.empty()))
    assert "Not yet" in outline.text
    assert "There is no study yet" in outline.text
    assert outline.named("details") == []


def test_a_sum_that_nothing_is_claimed_of_is_no_headline() -> None:
    whole = sample_report.report()
    unproven = replace(whole.total, gain=replace(whole.total.gain, verdict="not_yet"))
    html = page.render(replace(whole, total=unproven))
    assert '<p class="big">Not yet</p>' in html
    assert "which proves nothing yet" in html


def test_a_loss_is_a_headline_too() -> None:
    whole = sample_report.report()
    hours = replace(whole.total.node_hours, saved=-50.0, low=-80.0, high=-20.0)
    gain = replace(whole.total.gain, verdict="slower", share=-0.1, low=-0.2, high=-0.05)
    html = page.render(replace(whole, total=replace(whole.total, gain=gain, node_hours=hours)))
    assert '<span class="figure-number">50</span> node-hours lost' in html


def test_a_large_site_fits_and_the_page_says_what_it_leaves_out() -> None:
    whole = sample_report.report(studies=1300)
    html = page.render(whole)
    assert html.count('<details class="study"') == selection.DETAILS
    assert len(html) < 6_000_000
    assert "1,000 of 1,300 studies" in html
    assert "100 of 1,300 studies" in html
    assert "300 of 1,300 applications" in html


def test_details_are_for_news_then_claims_then_use() -> None:
    whole = sample_report.report(studies=600)
    shown = {study.study_id for study in selection.detailed(whole)}
    news = {finding.study_id for finding in whole.findings if finding.needs_a_person}
    news |= {change.study_id for change in whole.changes if change.study_id is not None}
    assert news <= shown
    claimed = [study for study in whole.studies if words.claims(study.gain)]
    least = min(study.node_hours.used for study in claimed if study.study_id in shown - news)
    assert all(study.node_hours.used <= least for study in claimed if study.study_id not in shown)


def test_the_index_has_the_newest_night_first_and_links_each(tmp_path: Path) -> None:
    nights = sample_report.nights(number=3)
    odd = replace(nights[0], folder='2026 "x"')
    outline = Outline(page.render_index([odd, *nights[1:]]))
    links = [attributes["href"] for attributes in outline.named("a")[1:]]
    newest = f"./{nights[2].folder}/index.html"
    assert links == [
        newest,
        newest,
        f"./{nights[1].folder}/index.html",
        "./2026%20%22x%22/index.html",
    ]
    (tmp_path / "index.html").write_text(page.render_index([]), encoding="utf-8")
    assert "No night has been reported yet" in (tmp_path / "index.html").read_text()


def test_a_range_is_no_night_of_the_curve() -> None:
    nights = sample_report.nights(number=3)
    whole = replace(nights[-1], folder="2026-11-01_2026-11-20", first="2026-11-01T00:00:00+00:00")
    drawn = re.findall(r'd="M([^"]*)" class="line tuned"', page.render_index([*nights, whole]))
    assert drawn == re.findall(r'd="M([^"]*)" class="line tuned"', page.render_index(nights))
    assert len(drawn[0].split("L")) == len(nights)


def test_a_night_is_its_report_in_short() -> None:
    whole = sample_report.report()
    night = Night.of(whole, "2026-11-20")
    assert (night.gain, night.node_hours) == (whole.total.gain, whole.total.node_hours)
    assert (night.changes, night.findings) == (5, 7)
    cards = selection.findings(whole, asking=True)
    assert night.to_do == cards.total == 4, "the index counts what the page has cards for"


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0, 97, (0, 100)), (1203, 1891, (1200, 2000)), (-0.3, 0.31, (-0.4, 0.4)), (5, 5, (4, 6))],
)
def test_ticks_are_round_and_hold_the_range(
    low: float, high: float, ends: tuple[float, float]
) -> None:
    marks = svg.ticks(low, high)
    assert (marks[0], marks[-1]) == pytest.approx(ends)
    assert 3 <= len(marks) <= 7


def test_decades_hold_the_range() -> None:
    assert svg.decades(3, 700) == [2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert svg.decades(3, 70000) == [1, 10, 100, 1000, 10000, 100000]


def test_a_drawing_escapes_what_it_is_given() -> None:
    """Attack (environment): A name in the nightly report is markup, or an attribute that acts.
    Outcome: The page shows it as text.
    """
    drawing = svg.Drawing(10, 10)
    drawing.text(0, 0, "</text><script>", class_='"x"')
    drawn = str(drawing.figure("k", "<t>", "&"))
    assert "<script>" not in drawn
    assert 'class="&#34;x&#34;"' in drawn


def test_what_an_agent_did_is_drawn_and_said() -> None:
    study = sample_report.report().studies[0]
    drawn = str(inside_job.inside_job(study))
    assert "settling on n0042 in run 412: 2 moves, 56.6 to 113 MB/s." in drawn
    # What a lever had in the last period, not what was set at its end.
    assert "max_rpcs_in_flight: 8 to 32, at last 32" in drawn
    assert "max_pages_per_rpc: 256, never moved" in drawn
    told = study.inside_job
    assert told is not None
    assert inside_job.inside_job(replace(study, inside_job=replace(told, entries=[]))) is None
    assert inside_job.inside_job(replace(study, inside_job=None)) is None


def test_what_runs_did_is_told_with_intervals(html: str) -> None:
    study = sample_report.report().studies[0]
    elapsed, written, *_ = study.measures
    assert elapsed.default is not None
    ends = words.typical_ends("elapsed", elapsed.default)
    assert re.fullmatch(r"[\d.,]+\u00a0s\u00a0to\u00a0[\d.,]+\u00a0s", ends), ends
    assert words.typical("asked_written_bytes", written.default) == "84.0\u00a0GB"
    few = replace(elapsed.default, median=81_920.0, low=None, high=None, runs=5)
    assert words.typical("write_calls", few) == "81,920"
    assert words.typical_ends("write_calls", few) == ""
    assert words.typical("elapsed", None) == "\u2013"
    marked = [words.typical("marked_seconds", study.measures[2].default)]
    marked.append(words.typical_ends("marked_seconds", study.measures[2].default))
    assert (
        f"<code>marked_seconds</code></th><td>{marked[0]} <small>{marked[1]}</small></td>" in html
    )
    assert study.cleaned is not None
    assert words.cleaned_sentence(study.cleaned, study.gain) in html
    by_marks = replace(study.gain, objective="marked_seconds")
    said = words.cleaned_sentence(study.cleaned, by_marks)
    assert "marked I/O seconds of the default is" in said


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _schemes() -> list[dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", CSS.read_text(), re.DOTALL)
    found = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+)", block)) for block in blocks]
    assert len(found) == 3
    return found


@pytest.mark.parametrize("scheme", _schemes(), ids=["light", "dark", "print"])
def test_marks_and_lines_have_the_contrast_that_graphics_need(scheme: dict[str, str]) -> None:
    """WCAG 2.2, 1.4.11: 3 to 1 against what is around."""
    for name in ("tuned", "default", "exploring", "good", "bad", "link", "ink", "muted"):
        assert _contrast(scheme[name], scheme["ground"]) >= 3, name
        assert _contrast(scheme[name], scheme["raised"]) >= 3, name


@pytest.mark.parametrize("scheme", _schemes(), ids=["light", "dark", "print"])
def test_a_heat_maps_steps_grow_evenly_and_their_numbers_can_be_read(
    scheme: dict[str, str],
) -> None:
    steps = [_luminance(scheme[f"heat-{step}"]) for step in range(7)]
    assert steps in (sorted(steps), sorted(steps, reverse=True))
    for step in range(7):
        assert _contrast(scheme[f"on-{step}"], scheme[f"heat-{step}"]) >= 4.5
