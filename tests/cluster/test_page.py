"""The page of one's own studies."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from devcluster import files, render
from harness import ALICE, BOB, ROOT, Site, asked, lines
from services import service_beside

MUCH = "\n[users]\nrequests_per_second = 1e6\nburst = 1e6\n"
"""A page asks twice for each study, and users here have hundreds: their quota would take a minute.
"""


@pytest.fixture(scope="module")
def patient(site: Site) -> Iterator[str]:
    """Return the option that asks a service whose users may ask for much."""
    config = site.paths.etc / "page-client.toml"
    text = site.paths.service_toml.read_text(encoding="utf-8") + MUCH
    with service_beside(site, "page", text) as unix:
        clients = site.paths.client_toml.read_text(encoding="utf-8")
        files.write(config, render.asking(clients, [f"unix:{unix}"]), mode=0o644)
        yield f"--config={config}"


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


def test_a_page_of_ones_own_says_what_the_terminal_says(site: Site, patient: str) -> None:
    app = "paged"
    for _ in range(3):
        site.run("cat ${ROMIO_HINTS:-/dev/null}", asked(app))
    site.run("true", asked("paged-of-bob"), user=BOB)
    number = str(site.study(app, ALICE)["study_id"])

    done = site.tuner(ALICE, patient, "report", "--mine")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    page = Read(done.stdout)
    assert "paged-of-bob" not in page.text
    said = site.tuner(ALICE, "status", "--study", number).stdout
    for line in lines(said):
        assert line in page.text, line
    rows = lines(site.tuner(ALICE, "history", app, "--parsable2", "--noheader").stdout)
    assert len(rows) == 3
    for row in rows:
        assert f">{row.split('|')[0]}</td>" in done.stdout, row
    # Nothing is fetched and nothing runs.
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "style"})
    targets = [value for name, value in page.attributes if name == "href"]
    assert targets
    assert all(value and value.startswith("#study-") for value in targets), targets
    # An admin's own are their own too.
    assert "paged" not in Read(site.tuner(ROOT, patient, "report", "--mine").stdout).text


def test_what_a_job_is_called_is_no_markup(site: Site, patient: str) -> None:
    name = "<img src=x onerror=alert(1)>&\"'"
    job = site.sbatch("true", "--io-autotune", f"--job-name={shlex.quote(name)}")
    run = site.judged(job)
    shown = site.tuner(ALICE, patient, "report", "--mine").stdout
    assert "<img" not in shown
    assert re.search(rf"<h2>{re.escape(html.escape(run['application']))}</h2>", shown), run
