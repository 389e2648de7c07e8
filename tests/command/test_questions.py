"""What changes many studies is asked about where somebody is there, and else refused."""

from __future__ import annotations

import pytest

from command.service import ALICE, BOB, ROOT, Service
from command.terminal import at_terminal


def test_an_order_of_many_is_refused_where_nobody_can_be_asked(served: Service) -> None:
    served.run(BOB, "asked-about")
    for order in (
        ("freeze", "--all"),
        ("off", "--accelerator", "romio"),
        ("pin", "default", "--user", BOB),
        ("pin", "--all"),
    ):
        # A person's answer in a file is none.
        done = served.tuner(BOB, *order, "--why", "a test", stdin="y\ny\n")
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "nothing was changed: " in done.stderr
        assert "add --yes to do it without a question" in done.stderr
    assert served.ask(BOB, "audit", "orders") == []
    # An admin's are about everyone's.
    done = served.tuner(ROOT, "freeze", "--all", "--why", "maintenance")
    assert (done.returncode, "--yes" in done.stderr) == (2, True), done
    assert served.ask(BOB, "audit", "orders") == []


@pytest.mark.parametrize(("typed", "is_done"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_shown_what_would_change_and_asked(
    served: Service, typed: str, *, is_done: bool
) -> None:
    app = "asked-about-in-person"
    served.run(BOB, app)
    order = ("freeze", "--user", BOB, "--why", "a test")
    shown = at_terminal(served, BOB, order, columns=200, types=typed)
    plain = shown.plain()
    assert app in plain, "what would change is listed"
    assert "Do it? [y/N]" in plain, plain
    given = [one["scope"]["uid"] for one in served.ask(BOB, "audit", "orders")]
    if is_done:
        assert (shown.status, len(given)) == (0, 1), plain
        served.ask(BOB, "freeze", "--end", "--user", BOB, "--why", "over", "--yes")
    else:
        assert (shown.status, given) == (2, []), plain
        assert "nothing was changed" in plain


def test_an_order_for_a_name_that_no_study_has_is_given_on_purpose(served: Service) -> None:
    app = "mistyped"
    served.run(ALICE, app)
    lines, orders = (served.ask(ALICE, *list_) for list_ in (("audit",), ("audit", "orders")))
    off = ("off", "mistpyed", "--why", "of later ones")
    done = served.tuner(ALICE, *off)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"(there is {app}" in done.stderr, done.stderr
    assert "add --yes to give the order" in done.stderr
    assert served.ask(ALICE, "audit") == lines, "nothing was sent"
    given = served.ask(ALICE, *off, "--yes")
    undone = served.ask(ALICE, "undo", str(given["line"]), "--why", "it was a mistake")
    assert (undone["action"], undone["why"]) == ("off", "of later ones")
    assert served.ask(ALICE, "audit", "orders") == orders


def test_an_accelerator_that_is_not_there_is_named_with_the_nearest(served: Service) -> None:
    orders = served.ask(ALICE, "audit", "orders")
    for name in ("romoi", "romio+page-cahce"):
        order = ("freeze", "--accelerator", name, "--why", "a test", "--yes")
        done = served.tuner(ALICE, *order)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "nothing was changed: the catalogue has no accelerator" in done.stderr
        assert "`io-autotune accelerators list`" in done.stderr
    assert served.ask(ALICE, "audit", "orders") == orders


def test_a_removal_of_old_runs_says_what_it_would_remove_and_asks(served: Service) -> None:
    removal = ("admin", "retention", "--older-than", "400")
    tried = served.tuner(ROOT, *removal, "--dry-run")
    assert (tried.returncode, tried.stdout[:9]) == (0, "dry run: "), tried
    why = ("--why", "a full disk")
    done = served.tuner(ROOT, *removal, *why)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "removal of what is older than 400 days would; add --yes" in done.stderr
    done = served.tuner(ROOT, *removal, *why, "--yes")
    said = "done: no run is old and not needed: older than 400 days.\n"
    assert (done.returncode, done.stdout) == (0, said)
    done = served.tuner(ALICE, *removal, *why, "--yes")
    assert (done.returncode, "only admins" in done.stderr) == (4, True), done
    done = served.tuner(ROOT, "admin", "retention", "--older-than", "3", "--yes")
    assert (done.returncode, "30..=36500" in done.stderr) == (2, True), done


def test_a_reason_that_is_not_what_it_looks_like_is_refused_and_not_repeated(
    served: Service,
) -> None:
    """Attack (units): A `--why` is too long, of several lines, or has escapes or invisible
    characters.
    Outcome: It is refused; a stored one is shown with question marks.
    """
    app = "lost-reasons"
    served.run(ALICE, app)
    for character in ("\u202e", "\u2066", "\u200b", "\ufeff", "\u061c", "\x1b"):
        done = served.tuner(ALICE, "reset", app, "--why", f"fine {character}txt.exe")
        assert done.returncode == 4, ascii(character)
        assert character not in done.stderr + done.stdout
    assert served.sql("select count(*) from audit where why like '%txt.exe%'") == [["0"]]
