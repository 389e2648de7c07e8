"""The page in a real browser: what is seen, read out, clicked, typed and printed."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import sample_report
from browser import CHROMIUM, DRIVER, Browser, browser
from io_autotune_report.render import page
from io_autotune_report.render.page import words
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.remote.webelement import WebElement

OPEN_ALL = "for (const details of document.querySelectorAll('details')) details.open = true"

# Every text that can be seen, with its colour and with what is painted behind its middle.
CONTRAST = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const over = (top, below) => {
  const alpha = top[3] ?? 1;
  return [0, 1, 2].map((index) => alpha * top[index] + (1 - alpha) * below[index]);
};
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((part) => {
    part /= 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const painted = (element) => {
  const style = getComputedStyle(element);
  if (!(element instanceof SVGElement)) return channels(style.backgroundColor);
  if (!(element instanceof SVGGeometryElement) || style.fill === "none") return [0, 0, 0, 0];
  const fill = channels(style.fill);
  return [...fill.slice(0, 3), (fill[3] ?? 1) * style.fillOpacity];
};
const bad = [];
let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.textContent.trim();
  if (!text || element.closest("script, style, title, desc")) continue;
  if (!element.checkVisibility({ visibilityProperty: true })) continue;
  if (element.closest(".hidden, .skip")) continue;
  const range = document.createRange();
  range.selectNodeContents(walker.currentNode);
  const box = range.getClientRects()[0] ?? element.getBoundingClientRect();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
  const stack = document.elementsFromPoint(x, y);
  const at = stack.indexOf(element);
  if (at < 0) continue;
  const style = getComputedStyle(element);
  const layers = stack.slice(element instanceof SVGElement ? at + 1 : at).map(painted);
  const behind = layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  const colour = over(channels(element instanceof SVGElement ? style.fill : style.color), behind);
  const [light, dark] = [luminance(colour), luminance(behind)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  seen += 1;
  if (ratio < 4.5) bad.push([ratio, element.tagName, element.getAttribute("class"), text]);
}
return [seen, bad];
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.skip("Debian's chromium is not installed; as root: deploy/install-deps browser")
    with browser(tmp_path_factory.mktemp("home")) as opened:
        opened.driver.get("about:blank")
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's page, the page of a site without runs, and the index."""
    folder = tmp_path_factory.mktemp("pages")
    for name, html in {
        "report": page.render(sample_report.report(), index="nights.html"),
        "empty": page.render(sample_report.empty()),
        "nights": page.render_index(sample_report.nights()),
    }.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return folder


@pytest.fixture
def shown(window: Browser, pages: Path) -> Browser:
    """The sample's page on a desktop's screen, with an empty log."""
    window.complaints()
    window.fetched()
    window.show(pages / "report.html")
    return window


def header(window: Browser, table: str, label: str) -> WebElement:
    """The button that sorts a table by a column."""
    buttons = window.driver.find_elements(By.CSS_SELECTOR, f"{table} thead button")
    return next(button for button in buttons if button.text.startswith(label))


def column(window: Browser, table: str, place: int) -> list[str]:
    """What a table sorts by, row by row."""
    return window.run(
        "return [...document.querySelector(arguments[0]).tBodies[0].rows].map("
        "(row) => row.cells[arguments[1]].dataset.v ?? row.cells[arguments[1]].textContent.trim())",
        table,
        place,
    )


def sorts(window: Browser, table: str) -> list[str]:
    """What the headers say of the order."""
    return window.run(
        "return [...document.querySelectorAll(`${arguments[0]} th[data-sort]`)].map("
        "(header) => header.getAttribute('aria-sort'))",
        table,
    )


@pytest.mark.parametrize("name", ["report", "empty", "nights"])
def test_it_loads_nothing_and_complains_of_nothing(window: Browser, pages: Path, name: str) -> None:
    window.complaints()
    window.fetched()
    window.show(pages / f"{name}.html")
    window.run(OPEN_ALL)
    assert window.complaints() == []
    asked = [address for address in window.fetched() if not address.startswith("chrome:")]
    assert [address for address in asked if not address.startswith("data:")] == [
        (pages / f"{name}.html").as_uri()
    ]


def test_names_that_are_markup_are_shown_as_they_are(shown: Browser) -> None:
    shown.run(OPEN_ALL)
    names = shown.run(
        "return [...document.querySelectorAll('.name')].map((name) => name.innerText)"
    )
    assert sample_report.HOSTILE in names
    assert sample_report.HOSTILE_ATTRIBUTE in names
    assert shown.run("return document.images.length") == 0


def test_markup_that_came_through_would_still_not_run(shown: Browser) -> None:
    """The policy holds even if escaping did not."""
    shown.run(
        "document.body.insertAdjacentHTML('beforeend',"
        '\'<button id="planted" onclick="window.hit = 1">x</button>\')'
    )
    shown.run("document.getElementById('planted').click()")
    assert shown.run("return window.hit ?? null") is None
    assert any("Content Security Policy" in complaint for complaint in shown.complaints())


def test_a_click_sorts_and_another_turns_it_round(shown: Browser) -> None:
    table = "table.studies"
    saved = 5
    header(shown, table, "Node time").click()
    known = [float(value) for value in column(shown, table, saved) if value]
    assert len(known) == 10
    assert known == sorted(known, reverse=True)
    assert column(shown, table, saved)[10:] == ["", ""]
    assert sorts(shown, table).count("descending") == 1
    assert sorts(shown, table).count("none") == len(sorts(shown, table)) - 1
    header(shown, table, "Node time").click()
    assert [float(value) for value in column(shown, table, saved)[:10]] == sorted(known)
    assert column(shown, table, saved)[10:] == ["", ""], "what is not known stays last"
    assert sorts(shown, table).count("ascending") == 1


@pytest.mark.parametrize("key", [Keys.ENTER, Keys.SPACE])
def test_the_keyboard_sorts(shown: Browser, key: str) -> None:
    table = "table.studies"
    before = column(shown, table, 0)
    header(shown, table, "Application").send_keys(key)
    after = column(shown, table, 0)
    assert before != after
    assert after == shown.run(
        "return arguments[0].sort((a, b) => a.localeCompare(b, 'en'))", before
    )
    assert sorts(shown, table)[0] == "ascending"


def test_one_table_is_shown_and_a_button_chooses_another(shown: Browser) -> None:
    seen = (
        "return [...document.querySelectorAll('.tabbed > section')].filter("
        "(section) => section.checkVisibility()).map((section) => section.querySelector('h3').id)"
    )
    assert shown.run(seen) == ["studies"]
    buttons = shown.driver.find_elements(By.CSS_SELECTOR, ".tabs button")
    users = next(button for button in buttons if button.text == "Users")
    users.send_keys(Keys.ENTER)
    assert shown.run(seen) == ["users"]
    pressed = [button.text for button in buttons if button.get_attribute("aria-pressed") == "true"]
    assert pressed == ["Users"]


def test_the_tab_key_reaches_a_header(shown: Browser) -> None:
    first = header(shown, "table.studies", "Application")
    shown.run("arguments[0].focus()", first)
    shown.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert shown.driver.switch_to.active_element.text.startswith("Verdict")


def test_claims_come_before_what_is_not_claimed(shown: Browser) -> None:
    header(shown, "table.studies", "Gain").click()
    gains = column(shown, "table.studies", 2)
    claimed = [float(gain) for gain in gains if gain]
    assert claimed == sorted(claimed, reverse=True)
    assert gains[: len(claimed)] == [gain for gain in gains if gain]


def test_the_filter_keeps_rows_that_hold_every_word(shown: Browser) -> None:
    field = shown.driver.find_element(By.CSS_SELECTOR, ".filter input")
    field.send_keys("biochem FASTER")
    rows = shown.driver.find_elements(By.CSS_SELECTOR, "table.studies tbody tr")
    visible = [row for row in rows if row.is_displayed()]
    assert [row.find_element(By.CSS_SELECTOR, ".name").text for row in visible] == [
        "gromacs-checkpoint"
    ]
    assert shown.driver.find_element(By.CSS_SELECTOR, ".filter [role=status]").text == "1 of 12"


@pytest.mark.parametrize("clipboard", ["granted", "denied", "missing"])
def test_the_button_copies_the_chosen_parametrization(shown: Browser, clipboard: str) -> None:
    """A page that came over HTTP has no clipboard of its own."""
    study = sample_report.report().studies[0]
    granted = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    shown.command("Browser.resetPermissions")
    shown.command("Browser.grantPermissions", permissions=granted)
    shown.run("document.getElementById('study-1').open = true")
    shown.driver.execute_async_script("navigator.clipboard.writeText('before').then(arguments[0])")
    if clipboard == "denied":
        shown.command("Browser.grantPermissions", permissions=granted[:1])
    if clipboard == "missing":
        hidden = "{value: undefined, configurable: true}"
        shown.run(f"Object.defineProperty(navigator, 'clipboard', {hidden})")
    button = shown.driver.find_element(By.CSS_SELECTOR, "#study-1 button[data-copy]")
    shown.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
    status = shown.driver.find_element(By.CSS_SELECTOR, "#study-1 [role=status]")
    shown.run(
        "window.told = new Promise((done) => new MutationObserver(done)"
        ".observe(arguments[0], {childList: true}))",
        status,
    )
    button.click()
    shown.driver.execute_async_script("window.told.then(() => arguments[0]())")
    assert status.text == "Copied."
    shown.run("delete navigator.clipboard")
    copied = shown.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied.strip() == words.parametrization(study)
    assert shown.run("return getSelection().isCollapsed") == (clipboard == "granted")


def test_a_link_opens_its_study_each_time(shown: Browser) -> None:
    link = shown.driver.find_element(By.CSS_SELECTOR, "#main .findings a[href='#study-4']")
    study = shown.driver.find_element(By.ID, "study-4")
    for _ in range(2):
        shown.run("arguments[0].open = false", study)
        shown.run("arguments[0].click()", link)
        shown.driver.execute_async_script("setTimeout(arguments[0])")
        assert study.get_attribute("open") is not None


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("name", ["report", "empty", "nights"])
def test_a_phone_never_scrolls_sideways(
    window: Browser, pages: Path, name: str, width: int
) -> None:
    window.show(pages / f"{name}.html", width=width, height=844)
    window.run(OPEN_ALL)
    assert window.run("return innerWidth") == width
    assert window.run("return document.documentElement.scrollWidth") == width


def test_a_figures_text_is_no_smaller_on_a_phone(window: Browser, pages: Path) -> None:
    window.show(pages / "report.html", width=390)
    window.run(OPEN_ALL)
    smallest = window.run(
        "return Math.min(...[...document.querySelectorAll('svg.figure text')].map("
        "(text) => 11 * text.getScreenCTM().a))"
    )
    assert smallest >= 10


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("name", "texts"), [("report", 1200), ("empty", 30), ("nights", 250)])
def test_every_text_has_the_contrast_of_wcag_aa(
    window: Browser, pages: Path, name: str, texts: int, *, dark: bool
) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1, of large text too; in figures against what is painted there."""
    # As high as it is: what is painted behind a text is asked of what the window shows.
    window.show(pages / f"{name}.html", height=32000, dark=dark)
    window.run(OPEN_ALL)
    assert window.run("return document.documentElement.scrollHeight <= innerHeight")
    seen, bad = window.run(CONTRAST)
    assert seen >= texts
    assert bad == []


def test_dark_is_dark(window: Browser, pages: Path) -> None:
    grounds = []
    for dark in (False, True):
        window.show(pages / "report.html", dark=dark)
        ground = window.run("return getComputedStyle(document.body).backgroundColor")
        grounds.append(int(re.findall(r"\d+", ground)[0]))
    assert grounds[0] > 240
    assert grounds[1] < 40


@pytest.mark.parametrize("name", ["report", "empty", "nights"])
def test_what_a_screen_reader_finds(window: Browser, pages: Path, name: str) -> None:
    window.show(pages / f"{name}.html")
    window.run(OPEN_ALL)
    nodes = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in window.command("Accessibility.getFullAXTree")["nodes"]
        if not node["ignored"]
    ]
    roles = [role for role, _ in nodes]
    assert (roles.count("main"), roles.count("banner"), roles.count("contentinfo")) == (1, 1, 1)
    for role in ("image", "button", "link", "region", "navigation", "searchbox", "table"):
        nameless = [role for found, label in nodes if found == role and not label.strip()]
        assert role == "table" or nameless == []
    levels = window.run(
        "return [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((head) => +head.tagName[1])"
    )
    assert levels.count(1) == 1
    assert levels[0] == 1
    for above, below in pairwise(levels):
        assert below <= above + 1
    assert window.run("return document.documentElement.lang") == "en"


def test_print_shows_what_is_closed_on_the_screen(shown: Browser) -> None:
    assert shown.run("return document.querySelectorAll('details[open]').length") == 0
    sheets = re.findall(rb"/Type /Page\b(?!s)", shown.pdf())
    assert len(sheets) > 12, "each of twelve studies takes about a page"
    assert shown.run("return document.querySelectorAll('details[open]').length") == 0


def test_a_script_opens_all_for_print_where_the_style_sheet_cannot(shown: Browser) -> None:
    opened = "return document.querySelectorAll('details.study[open]').length"
    shown.run("document.getElementById('study-1').open = true")
    shown.run("dispatchEvent(new Event('beforeprint'))")
    assert shown.run(opened) == 12
    shown.run("dispatchEvent(new Event('afterprint'))")
    assert shown.run(opened) == 1


def test_print_needs_no_script_to_show_it(shown: Browser) -> None:
    seen = "return [...document.querySelectorAll('.lead')].map((text) => text.checkVisibility())"
    assert shown.run(seen) == [True] + 12 * [False]
    shown.command("Emulation.setEmulatedMedia", media="print")
    assert shown.run(seen) == 13 * [True]


def test_without_scripts_all_is_there_and_no_button_is_dead(window: Browser, pages: Path) -> None:
    window.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.show(pages / "report.html")
        window.driver.find_element(By.CSS_SELECTOR, "#study-1 summary").click()
        buttons = window.driver.find_elements(By.TAG_NAME, "button")
        assert buttons
        assert not any(button.is_displayed() for button in buttons)
        chosen = window.driver.find_element(By.ID, "chosen-1")
        assert chosen.text == words.parametrization(sample_report.report().studies[0])
    finally:
        window.command("Emulation.setScriptExecutionDisabled", value=False)
