"""Accelerators as the service has them, and catalogue files before it has them."""

from __future__ import annotations

import re
from pathlib import Path

from harness import await_true

from command.service import ALICE, Service

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "accelerators.md"
SMALL = """
name = "small"
title = "A small accelerator"
description = "Made by a test."
takes_effect = "when the test looks"
[[parameters]]
name = "depth"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.environment]]
variable = "SMALL_DEPTH"
value = "{depth}"
omit_default = true
"""


def test_the_documentation_makes_an_accelerator(served: Service, shared: Path) -> None:
    """Follow docs/accelerators.md, "A new one in ten minutes"."""
    (text, *_others) = re.findall(r"```toml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    mine = shared / "fastio.toml"
    mine.write_text(text, encoding="utf-8")
    checked = served.tuner(ALICE, "accelerators", "check", str(mine))
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "fastio: 3 parameters" in checked.stdout
    catalogue = served.place.paths.accelerators / "fastio.toml"
    catalogue.write_text(text, encoding="utf-8")
    try:
        await_true(
            "the accelerator to be there",
            lambda: "fastio" in served.tuner(ALICE, "accelerators", "list").stdout,
        )
        shown = served.tuner(ALICE, "accelerators", "show", "fastio").stdout
        assert "not run on the real thing" in shown
        run = served.live(served.job(ALICE, "fast", accelerator="fastio"))
        pin = ("pin", "fast", "buffer_kib=64", "threads=8", "mode=threaded", "--why", "forbidden")
        done = served.tuner(ALICE, *pin)
        assert (done.returncode, "must hold" in done.stderr) == (4, True), done
        assert run["accelerator"] == "fastio"
    finally:
        catalogue.unlink()


def test_a_mistake_in_a_file_is_told_with_its_place(served: Service, shared: Path) -> None:
    file = shared / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    done = served.tuner(ALICE, "accelerators", "check", str(file))
    assert (done.returncode, done.stdout) == (
        0,
        "small: 1 parameters, at most 3 parametrizations\n  variable SMALL_DEPTH = {depth}\n",
    )
    file.write_text(SMALL.replace("{depth}", "{deep}"), encoding="utf-8")
    done = served.tuner(ALICE, "accelerators", "check", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert "small.toml:13:9:" in done.stderr
    assert 'parameter "deep" is not among' in done.stderr


def test_accelerators_are_listed_and_shown_with_what_they_tune(served: Service) -> None:
    names = [one["name"] for one in served.ask(ALICE, "accelerators", "list")]
    assert {"romio", "page-cache"} <= set(names)
    shown = served.tuner(ALICE, "accelerators", "list").stdout
    assert all(name in shown for name in names)
    together = parameters(served, "romio+page-cache")
    alone = [*parameters(served, "romio"), *parameters(served, "page-cache")]
    assert sorted(together) == sorted(alone)
    shown = served.tuner(ALICE, "accelerators", "show", "romio+page-cache").stdout
    assert all(name in shown for name in alone), shown


def parameters(served: Service, accelerator: str) -> list[str]:
    """Return the names of an accelerator's parameters."""
    space = served.ask(ALICE, "accelerators", "show", accelerator)["space"]
    known = space if isinstance(space, list) else space["parameters"]
    return [parameter["name"] for parameter in known]
