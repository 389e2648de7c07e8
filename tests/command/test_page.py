"""The page of one's own studies: who gets which, and where it goes."""

from __future__ import annotations

from pathlib import Path

from harness import await_true

from command.service import ALICE, BOB, CAROL, ROOT, Service
from command.terminal import at_terminal, run_at_terminal

NIGHT = "2026-11-20"


def test_each_user_has_their_own_page_and_who_has_none_is_told_why(served: Service) -> None:
    served.publish(NIGHT, {ALICE: "of alice", BOB: "of bob"})
    for user, text in ((ALICE, "of alice"), (BOB, "of bob")):
        done = served.tuner(user, "report", "--mine")
        assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    for user in (CAROL, ROOT):
        done = served.tuner(user, "report", "--mine")
        assert (done.returncode, done.stdout) == (4, "")
        assert "no page of your studies has been made yet" in done.stderr
        assert "`io-autotune status` says how your studies are now" in done.stderr


def test_a_page_is_written_where_it_is_wanted(served: Service, shared: Path) -> None:
    served.publish(NIGHT, {BOB: "of bob"})
    file = shared / "mine.html"
    done = served.tuner(BOB, "report", "--mine", "--output", str(file))
    said = f"the page of your studies, of the night {NIGHT}, is in {file}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert file.read_text(encoding="utf-8") == "of bob"
    done = served.tuner(BOB, "report", "--mine", "--output", str(shared / "no" / "mine.html"))
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "cannot write" in done.stderr


def test_on_a_terminal_a_page_is_kept_and_opened_where_there_is_a_browser(
    served: Service, shared: Path
) -> None:
    served.publish(NIGHT, {ALICE: "of alice"})
    cache, opened = shared / "cache", shared / "opened"
    browser = shared / "browser" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\necho "$1" >{opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    env = ["env", f"XDG_CACHE_HOME={cache}", f"PATH={browser.parent}:{served.env['PATH']}"]
    asked = [*env, "DISPLAY=", "io-autotune", "report", "--mine"]
    shown = run_at_terminal(served, ALICE, asked, 200).plain()
    page = cache / "io-autotune" / "report.html"
    assert f"the page of your studies, of the night {NIGHT}, is in {page}" in shown
    assert page.read_text(encoding="utf-8") == "of alice"
    assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not opened.exists(), "without a display there is no browser"
    run_at_terminal(served, ALICE, [*env, "DISPLAY=:9", "io-autotune", "report", "--mine"], 200)
    await_true("the browser to be asked for the page", opened.exists)
    assert opened.read_text(encoding="utf-8") == f"{page}\n"
    told = at_terminal(served, CAROL, ["report", "--mine"], 80).plain()
    assert "no page of your studies" in told
