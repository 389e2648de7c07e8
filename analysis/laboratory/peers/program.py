"""Runs `io-autotune-simulate` and reads its output."""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


class ReplayError(Exception):
    """A failed replay: what was asked, what is wrong, what to do."""


def command_line(prog: str, description: str | None, output: Path) -> argparse.ArgumentParser:
    """What every command takes that replays tables: these, the program, and where it writes."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("tables", nargs="+", type=Path, metavar="TABLE.json or FOLDER")
    parser.add_argument("--output", type=Path, default=output, help=f"what it writes ({output})")
    parser.add_argument(
        "--jobs", type=at_least_one, default=os.cpu_count() or 1, help="(all cores)"
    )
    parser.add_argument(
        "--simulate",
        type=Path,
        default=Path("target/simulation/release/io-autotune-simulate"),
        help="our program",
    )
    return parser


def at_least_one(text: str) -> int:
    """Refuses numbers below 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


@dataclass(frozen=True)
class Program:
    """The program, its threads, and the directory of kept answers, if any."""

    path: Path
    threads: int
    kept: Path | None = None

    def methods(self, table: Path) -> list[str]:
        """The names of its methods; any table will do."""
        refused = self._run(["--table", str(table), "--method", "?"])
        names = re.search(r"must be one of ([a-z0-9, -]+)", refused.stderr)
        if names is None:
            raise ReplayError(f"{self.path} does not name its methods: {refused.stderr.strip()}")
        return re.findall(r"[a-z0-9-]+", names[1])

    def simulate(
        self, tables: list[Path], methods: list[str], words: list[str], plots: Path | None = None
    ) -> dict[str, Any]:
        """Returns its JSON for these tables, methods and further arguments; plots go to `plots`.

        Answers are kept by program, tables and arguments. Raises ReplayError if the program fails.
        """
        command = ["--format", "json", *words]
        command += [word for method in methods for word in ("--method", method)]
        if self.kept is None:
            return json.loads(self._answer(tables, command, plots))
        key = self.kept / self._key(tables, [*command, *([] if plots is None else ["plots"])])
        answer, drawn = key.with_suffix(".json"), key.with_suffix(".plots")
        if not answer.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            partly = key.with_suffix(".part")
            partly.write_text(self._answer(tables, command, plots and drawn), "utf-8")
            partly.replace(answer)
        if plots is not None:
            shutil.copytree(drawn, plots, dirs_exist_ok=True)
        return json.loads(answer.read_text("utf-8"))

    def _answer(self, tables: list[Path], command: list[str], plots: Path | None) -> str:
        command = [*command, "--threads", str(self.threads)]
        command += [word for table in tables for word in ("--table", str(table))]
        command += [] if plots is None else ["--plot", str(plots)]
        done = self._run(command)
        if done.returncode != 0:
            raise ReplayError(f"{self.path} {' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def _key(self, tables: list[Path], command: list[str]) -> str:
        files = [file for table in tables for file in (table, table.with_suffix(".csv"))]
        parts = [self._digest, *command, *(file.read_text("utf-8") for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    @cached_property
    def _digest(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except FileNotFoundError as error:
            raise self._missing() from error

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [str(self.path), *words], check=False, capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise self._missing() from error

    def _missing(self) -> ReplayError:
        return ReplayError(
            f"{self.path} is not there: run `make -C analysis simulate`, or name it with --simulate"
        )
