"""The page of one's own studies, against what the terminal is told."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

from harness import lines

from command.service import ALICE, BOB, ROOT, Service


class Read(HTMLParser):
    """The text of a page, and what it would have a browser do."""

    def __init__(self, page: str) -> None:
        """Read it."""
        super().__init__()
        self.text = ""
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data


def test_a_page_of_ones_own_says_what_the_terminal_says(served: Service) -> None:
    app = "paged"
    for _ in range(3):
        served.run(ALICE, app)
    served.run(BOB, "paged-of-bob")
    number = str(served.study(app)["study_id"])
    done = served.tuner(ALICE, "report", "--mine")
    assert (done.returncode, done.stderr) == (0, "")
    page = Read(done.stdout)
    assert "paged-of-bob" not in page.text
    for line in lines(served.tuner(ALICE, "status", "--study", number).stdout):
        assert line in page.text, line
    rows = lines(served.tuner(ALICE, "history", app, "--parsable2", "--noheader").stdout)
    assert len(rows) == 3
    for row in rows:
        assert f">{row.split('|')[0]}</td>" in done.stdout, row
    # An admin's own are their own too.
    assert "paged" not in Read(served.tuner(ROOT, "report", "--mine").stdout).text


def test_a_page_fetches_nothing_and_runs_nothing(served: Service) -> None:
    served.run(ALICE, "paged-still")
    page = Read(served.tuner(ALICE, "report", "--mine").stdout)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "style"})
    targets = [value for name, value in page.attributes if name == "href"]
    assert targets
    assert all(value and value.startswith("#study-") for value in targets), targets


def test_what_a_job_is_called_is_no_markup(served: Service) -> None:
    """Attack (others): A job's name is markup.
    Outcome: The page of the user's studies has it as text.
    """
    run = served.live(served.job(ALICE, job_name="<img src=x onerror=alert(1)>&\"'"))
    shown = served.tuner(ALICE, "report", "--mine").stdout
    assert "<img" not in shown
    assert re.search(rf"<h2>{re.escape(html.escape(run['application']))}</h2>", shown), run


def test_a_page_is_written_where_it_is_wanted(served: Service, shared: Path) -> None:
    served.run(BOB, "paged-to-a-file")
    file = shared / "mine.html"
    done = served.tuner(BOB, "report", "--mine", "--output", str(file))
    said = f"the page about your studies is in {file}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert "paged-to-a-file" in file.read_text(encoding="utf-8")
    done = served.tuner(BOB, "report", "--mine", "--output", str(shared / "no" / "mine.html"))
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "cannot write" in done.stderr
