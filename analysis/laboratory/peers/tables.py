"""Tables of measurements, NAME.toml or NAME.json and NAME.csv, read as `io-autotune-simulate` does.

The format is in docs/papers/simulate.md. Conditions and constraints are refused, because each
peer would need them translated.
"""

import csv
import difflib
import hashlib
import json
import math
import statistics
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.draws import Draw

RESERVED = {"time", "rel_sd"}
"""Columns that no parameter may be called."""

KINDS = {"integer": "int", "ordered": "ordinal", "categories": "categorical"}
"""TOML's kinds as JSON calls them."""

KEYS = {
    "int": {"name", "kind", "values", "when"},
    "ordinal": {"name", "kind", "values", "when"},
    "categorical": {"name", "kind", "values", "when"},
    "integer": {"name", "kind", "min", "max", "step", "default", "when", "unit", "description"},
    "ordered": {"name", "kind", "values", "default", "when", "unit", "description"},
    "categories": {"name", "kind", "values", "default", "when", "unit", "description"},
}
"""The keys of a parameter, by its kind."""

Point = tuple[int, ...]
"""For each parameter the place of its value in the file's list, from 0."""


class TableError(Exception):
    """An unusable table: file, place, what is wrong and what to do."""


@dataclass(frozen=True)
class Parameter:
    """A parameter; `ordered` if neighbouring values behave alike."""

    name: str
    ordered: bool
    values: tuple[Any, ...]

    @property
    def levels(self) -> int:
        """How many values it has."""
        return len(self.values)

    def level(self, field: str) -> int | None:
        """The index of a CSV field among the values."""
        for meaning in (
            _number(field),
            field,
            field.lower() if field.lower() in {"true", "false"} else None,
        ):
            if meaning is not None and meaning in self._places:
                return self._places[meaning]
        return None

    @property
    def _places(self) -> dict[Any, int]:
        return {_word(value): level for level, value in enumerate(self.values)}


@dataclass(frozen=True)
class Sample:
    """A row: one run's seconds or, with a relative standard deviation, the mean of several."""

    elapsed: float
    relative_sd: float | None


class Table:
    """A space with measurements. Places number the points in order of appearance in the CSV."""

    def __init__(self, path: Path) -> None:
        """Reads the space at `path` and its CSV file; raises TableError if they hold no table."""
        self.path = path
        text = _read(path)
        rows = _read(path.with_suffix(".csv"))
        try:
            described = _space(path, text)
            self.described = described
            """The space's file, as in JSON."""
            self.name: str = described.get("name") or path.stem
            self.words: str = _described(described)
            """What was measured, and where it is from, as far as the file says it."""
            self.parameters = tuple(_parameter(path, raw) for raw in described["parameters"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TableError(
                f"{path}: {error!r}: write it as docs/papers/simulate.md says"
            ) from error
        if described.get("constraints"):
            raise TableError(
                f"{path}: constraints cannot be given to the peers: leave this table out"
            )
        self.points: list[Point] = []
        self.samples: list[list[Sample]] = []
        self._places: dict[Point, int] = {}
        self._read_rows(path.with_suffix(".csv"), rows)
        self.truths = [sum(s.elapsed for s in of) / len(of) for of in self.samples]
        """The mean seconds of each parametrization."""
        self.best = min(range(len(self.truths)), key=self.truths.__getitem__)
        """The place of the lowest mean."""
        self.default = self._default(described.get("default"))
        """The place of the default; of the measured point nearest to it, if it was not measured."""
        self.digest = hashlib.sha256(f"{text}\0{rows}".encode()).hexdigest()
        """Changes with the files."""
        seen = (self.parameters, self.points, self.samples, self.default)
        self.content = hashlib.sha256(repr(seen).encode()).hexdigest()
        """Changes with what they say."""

    @property
    def scatter(self) -> float:
        """The median of the parametrizations' relative standard deviations of single runs."""
        spreads = []
        for samples, mean in zip(self.samples, self.truths, strict=True):
            within = [s.relative_sd**2 for s in samples if s.relative_sd is not None]
            if within:
                spreads.append(math.sqrt(sum(within) / len(within)))
            elif len(samples) > 1:
                squares = sum((sample.elapsed / mean - 1.0) ** 2 for sample in samples)
                spreads.append(math.sqrt(squares / (len(samples) - 1)))
        return statistics.median(spreads) if spreads else 0.0

    def place(self, point: Point) -> int | None:
        """The place of a point; None if it was not measured."""
        return self._places.get(tuple(point))

    def draw(self, place: int, nth: int, seed: int) -> float:
        """The seconds of a run that follows `nth` runs of its parametrization."""
        samples = self.samples[place]
        draw = Draw(seed, place, nth)
        sample = samples[draw.row(len(samples))]
        return sample.elapsed * (
            1.0 if sample.relative_sd is None else draw.factor(sample.relative_sd)
        )

    def _read_rows(self, path: Path, text: str) -> None:
        reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
        columns = reader.fieldnames or []
        self._check_columns(path, columns)
        for row in reader:
            fields = [(p, (row[p.name] or "").strip()) for p in self.parameters]
            levels = []
            for parameter, field in fields:
                level = parameter.level(field)
                if level is not None:
                    levels.append(level)
                    continue
                raise TableError(
                    f"{path}, line {reader.line_num}, column {parameter.name!r}: {field!r} "
                    "is not among the values of the space's file: correct one of them"
                )
            elapsed = self._number(path, reader.line_num, row, "time")
            if elapsed == 0.0:
                raise TableError(f"{path}, line {reader.line_num}: a time must be above 0 seconds")
            spread = (
                self._number(path, reader.line_num, row, "rel_sd") if "rel_sd" in columns else None
            )
            point = tuple(levels)
            if point not in self._places:
                self._places[point] = len(self.points)
                self.points.append(point)
                self.samples.append([])
            self.samples[self._places[point]].append(Sample(elapsed, spread))
        if not self.points:
            raise TableError(f"{path}: there is no row below the first line: add the measurements")

    def _check_columns(self, path: Path, columns: Sequence[str]) -> None:
        used = [p.name for p in self.parameters]
        reserved = sorted(RESERVED & set(used))
        if reserved:
            raise TableError(
                f"{path}: a parameter is called {' or '.join(reserved)}, which is a run's seconds "
                "or their scatter: rename it and its column"
            )
        for name, count in Counter(columns).items():
            if count > 1 and name in {*used, *RESERVED}:
                raise TableError(f"{path}, line 1: there are {count} columns {name!r}: rename one")
        for name in [*used, "time"]:
            if name not in columns:
                raise TableError(f"{path}, line 1: there is no column {name!r}: add it")

    @staticmethod
    def _number(path: Path, line: int, row: dict[str, str], column: str) -> float:
        number = _number((row[column] or "").strip())
        if number is None or not math.isfinite(number) or number < 0.0:
            raise TableError(
                f"{path}, line {line}, column {column!r}: {row[column]!r} "
                "is not a number of 0 or more"
            )
        return number

    def _default(self, named: dict[str, Any] | None) -> int:
        wanted = []
        for parameter in self.parameters:
            if named is None:
                wanted.append((parameter.levels - 1) // 2 if parameter.ordered else 0)
                continue
            words = [_word(value) for value in parameter.values]
            try:
                wanted.append(words.index(_word(named[parameter.name])))
            except (KeyError, ValueError) as error:
                raise TableError(
                    f"{self.path}: the default's {parameter.name!r} is not among its values: "
                    "correct it"
                ) from error
        return min(
            range(len(self.points)), key=lambda place: self._distance(self.points[place], wanted)
        )

    def _distance(self, a: Point, b: list[int]) -> float:
        """Squared distances summed: 0 or 1 per category, else by the share of the range."""
        parts = (
            ((x - y) / max(p.levels - 1, 1)) ** 2 if p.ordered else float(x != y)
            for p, x, y in zip(self.parameters, a, b, strict=True)
        )
        return sum(parts)


def named(paths: list[Path]) -> list[Table]:
    """The tables of files and folders, each once; TableError if unreadable or a name repeats."""
    files = [
        f
        for path in paths
        for f in (sorted([*path.glob("*.json"), *path.glob("*.toml")]) if path.is_dir() else [path])
    ]
    tables = [Table(path) for path in {path.resolve(): path for path in files}.values()]
    names = [table.name for table in tables]
    if not tables:
        raise TableError(f"there is no table in {', '.join(map(str, paths))}: name a space's file")
    if len(set(names)) < len(names):
        raise TableError(f"several tables have one name: {', '.join(names)}: rename one")
    return tables


def _described(raw: dict[str, Any]) -> str:
    words = str(raw.get("domain") or raw.get("objective") or "")
    return f"{words}; {raw['source']}" if raw.get("source") else words


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TableError(f"{path}: line {line} is not in UTF-8: convert it with iconv") from error
    except OSError as error:
        raise TableError(
            f"cannot read {path}: {error}: check the path and its permissions"
        ) from error


def _space(path: Path, text: str) -> dict[str, Any]:
    """The space of a file as in JSON, which one in TOML is made into."""
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        described: dict[str, Any] = json.loads(text, object_pairs_hook=_once)
        for raw in described["parameters"]:
            _refuse_unknown_keys(path, raw)
        return described
    described = tomllib.loads(text)
    parameters = described["parameters"]
    for raw in parameters:
        _refuse_unknown_keys(path, raw)
    return described | {
        "parameters": [
            {
                "name": raw["name"],
                "kind": KINDS[raw["kind"]],
                "values": raw.get("values") or _range(raw),
                **({"when": raw["when"]} if "when" in raw else {}),
            }
            for raw in parameters
        ],
        "default": {raw["name"]: raw["default"] for raw in parameters},
    }


def _range(raw: dict[str, Any]) -> list[int]:
    return list(range(raw["min"], raw["max"] + 1, raw.get("step", 1)))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} is given twice: remove one")
    return dict(pairs)


def _refuse_unknown_keys(path: Path, raw: dict[str, Any]) -> None:
    known = KEYS.get(raw["kind"], set(raw))
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"
            raise TableError(f"{path}: {raw.get('name')!r} has the unknown key {key!r}: {meant}")


def _parameter(path: Path, raw: dict[str, Any]) -> Parameter:
    if raw.get("when"):
        raise TableError(f"{path}: conditions cannot be given to the peers: leave this table out")
    if raw["kind"] not in {"categorical", "ordinal", "int"}:
        raise TableError(
            f"{path}: {raw['name']!r}: {raw['kind']!r} is no kind: docs/papers/simulate.md has them"
        )
    return Parameter(raw["name"], raw["kind"] != "categorical", tuple(raw["values"]))


def _word(value: Any) -> str | float:  # noqa: ANN401 - whatever JSON has
    if isinstance(value, bool):
        return str(value).lower()
    return float(value) if isinstance(value, int | float) else str(value)


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
