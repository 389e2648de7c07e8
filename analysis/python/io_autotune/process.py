"""The installed `io-autotune optimize`, as a process that answers lines of JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from io_autotune import errors

# Where it is not in PATH, this variable of the environment names it.
VARIABLE = "IO_AUTOTUNE_PROGRAM"


# The program speaks of options and of a file with the space, which nobody has seen here.
_WORDS = [
    (r"another space: .*?\.toml: ", "another space: "),
    (r"--(name|storage|runs|compare|seed)\b", r"\1="),
    ("another goal", "another direction"),
]


def own_version() -> str:
    """Return this package's version."""
    try:
        return version("io-autotune")
    except PackageNotFoundError:  # From the tree.
        return ""


@functools.lru_cache
def program(command: str) -> str:
    """Return the path of the installed program, of this package's version."""
    path = shutil.which(command)
    if path is None:
        raise errors.ProgramNotFound(
            f"the program {command!r} is not in PATH: install io-autotune, or name it in the "
            f"environment, as in {VARIABLE}=/opt/io-autotune/bin/io-autotune"
        )
    asked = [path, "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    found, own = said.split()[-1:], own_version()
    if own and [".".join(one.split(".")[:2]) for one in found] != [".".join(own.split(".")[:2])]:
        raise errors.OtherVersion(
            f"{path} is {said.strip() or 'no io-autotune'}, and this package is of version {own}: "
            "install the package that comes with it, or the other way round"
        )
    return path


class Process:
    """A running `io-autotune optimize`. Threads take turns."""

    def __init__(self, space: str, options: Sequence[str]) -> None:
        """Start it on a space, the text of a file."""
        self._lock = threading.Lock()
        self._asked = space, options
        self.closed = False
        self._is_broken = True
        self._start()

    def _start(self) -> None:
        space, options = self._asked
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write(space)
            file.flush()
            storages = (one.partition("=")[2] for one in options if one.startswith("--storage="))
            self._places = file.name, next(storages, "")
            command = program(os.environ.get(VARIABLE, "io-autotune"))
            self._process = subprocess.Popen(
                [command, "optimize", "--space", file.name, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                encoding="utf-8",
                # Ctrl-C is for whoever called: what is kept is whole at any moment.
                start_new_session=True,
            )
            self._end = weakref.finalize(self, _end, self._process)
            self._is_broken = False
            # It has read the space once it answers.
            self.hints = self._exchange('{"plan":true}')["hints"]

    def ask(self, line: dict[str, object]) -> dict[str, Any]:
        """Return the answer to one line. After an interrupt it starts again from its storage."""
        try:
            text = json.dumps(line, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise errors.ValueRefused(f"a value is no finite number: {error}") from None
        with self._lock:
            if self.closed:
                raise errors.Error("the study is closed: make it anew, with its storage, to go on")
            if self._is_broken:
                self._start()
            return self._exchange(text)

    def _exchange(self, text: str) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(text + "\n")
            stdin.flush()
            answer = stdout.readline()
        except BrokenPipeError:
            answer = ""
        except BaseException:
            # The answer may still come, and would be taken for that to the next line.
            self._stop()
            raise
        if not answer:
            raise self._ended()
        read: dict[str, Any] = json.loads(answer)
        return read

    def _ended(self) -> Exception:
        self._stop()
        self._errors.seek(0)
        said = self._errors.read().strip().removeprefix("io-autotune: ")
        space, storage = self._places
        for pattern, word in _WORDS:
            said = re.sub(pattern, word, said)
        if said.startswith(space):
            # Nobody has seen the file.
            return errors.SpaceError(re.sub(rf"{re.escape(space)}(:\d+)*: ", "", said))
        if storage and said.startswith(storage):
            mine = "; if a study of this process has it, end that by study.close()"
            return errors.StorageError(said + (mine if "has it open" in said else ""))
        return errors.EngineEnded(
            f"io-autotune optimize ended with status {self._process.returncode}: "
            f"{said or 'it said nothing'}; what was told is kept in the storage, if there is one"
        )

    def _stop(self) -> None:
        self._is_broken = True
        self._end()

    def restart(self) -> None:
        """Start again at the next use, so that runs that are open are asked for again."""
        with self._lock:
            self._stop()

    def close(self) -> None:
        """End it; what was told is kept."""
        self.closed = True
        self._end()


def _end(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            # What could not be written has no reader any more.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    process.wait()
