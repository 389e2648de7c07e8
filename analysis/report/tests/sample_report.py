"""A report such as a site could have, from a seed: every verdict, no runs, hostile names.

Nothing in it was measured. It feeds the page's tests and screenshots.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import get_args

from io_autotune_report.document import (
    SCHEMA,
    Change,
    Cleaned,
    Estimate,
    ExploringSpent,
    Finding,
    FindingKind,
    Gain,
    Group,
    Importance,
    InsideJob,
    Judge,
    Measured,
    Night,
    NodeHours,
    Noise,
    NotCounted,
    Parameter,
    Report,
    RunPoint,
    SiteDefault,
    Study,
    Surface,
    Value,
    Verdict,
)

HOSTILE = "<script>alert(1)</script>"
HOSTILE_ATTRIBUTE = "\"'><img src=x onerror=alert(2)>"
REORDERING = "innocent\u202egnp.exe"
LONG = "coupled-ocean-atmosphere-sea-ice-biogeochemistry-ensemble-member-0042-" + "x" * 58

_NIGHT = datetime(2026, 11, 20, tzinfo=UTC)

_SPACE: dict[str, list[Value]] = {
    "cb_buffer_size": [1048576, 4194304, 16777216, 33554432, 67108864],
    "cb_nodes": ["automatic", 1, 2, 4, 8],
    "cb_config_list": ["*:1", "*:2", "*:4", "*:*"],
    "romio_cb_write": ["automatic", "enable", "disable"],
    "romio_ds_write": ["automatic", "enable", "disable"],
    "ind_wr_buffer_size": [131072, 524288, 2097152, 8388608],
}
_DEFAULT: dict[str, Value] = {
    "cb_buffer_size": 16777216,
    "cb_nodes": "automatic",
    "cb_config_list": "*:1",
    "romio_cb_write": "automatic",
    "romio_ds_write": "automatic",
    "ind_wr_buffer_size": 524288,
}

# Application, user, account, nodes, seconds, gain that is there, noise, runs, verdict.
_Plan = tuple[str, str, str | None, int, float, float, float, int, Verdict]
_PLANS: list[_Plan] = [
    ("ocean-nemo", "mgarcia", "climate", 16, 1840, 0.23, 0.06, 412, "faster"),
    ("wrf-forecast", "lchen", "weather", 32, 3120, 0.11, 0.05, 468, "faster"),
    ("gromacs-checkpoint", "tnowak", "biochem", 4, 412, 0.31, 0.08, 236, "faster"),
    ("vasp-relax", "okafor", "materials", 8, 5230, -0.07, 0.05, 301, "slower"),
    ("lammps-dump", "tnowak", "biochem", 8, 921, 0.05, 0.17, 84, "not_yet"),
    ("openfoam-writer", "sjensen", "engineering", 12, 2240, 0.002, 0.03, 388, "no_effect"),
    ("enzo-restart", "arossi", "astro", 24, 1460, 0.09, 0.41, 190, "unclear"),
    ("nightly-reindex", "svc-data", None, 1, 75, 0.0, 0.1, 0, "not_yet"),
    ("hello", "newuser", None, 1, 12.5, 0.0, 0.1, 1, "not_yet"),
    (HOSTILE, HOSTILE_ATTRIBUTE, REORDERING, 2, 61, 0.0, 0.2, 18, "not_yet"),
    (LONG, "a.very.long.user.name.of.some.federation", "climate", 64, 9400, 0.16, 0.07, 148,
     "faster"),
    ("ior-baseline", "svc-bench", "operations", 2, 240, 0.0, 0.04, 33, "not_yet"),
]  # fmt: skip


def report(seed: int = 7, studies: int = len(_PLANS)) -> Report:
    """A night of ``studies`` studies; more than twelve are the twelve again under other names."""
    random = Random(seed)
    made = [_study(random, index + 1, _plan(index)) for index in range(studies)]
    saved = sum(study.node_hours.saved or 0.0 for study in made)
    return Report(
        schema=SCHEMA,
        site="Northern Supercomputing Centre",
        generated_at=(_NIGHT + timedelta(days=1, hours=3, minutes=7)).isoformat(),
        first=_NIGHT.isoformat(),
        last=(_NIGHT + timedelta(days=1)).isoformat(),
        look=214,
        since=(_NIGHT - timedelta(days=213)).isoformat(),
        false_discovery_rate=0.05,
        total=_group("site", made, Gain(
            "faster", "Tuned runs against controls, weighted by node-hours.", 0.124, 0.097, 0.151,
            0.95, sum(s.gain.tuned_runs for s in made), sum(s.gain.control_runs for s in made),
            0.02, None,
        )),
        clusters=[],
        accelerators=[
            _group("romio", made, _gain("faster", 0.131, 0.03, 900, 70)),
            _group("lustre-client", made[:2], _gain("not_yet", 0.02, 0.2, 22, 5)),
        ],
        users=[replace(group, uid=_uid(group.name)) for group in _groups(made, "user")],
        accounts=_groups([study for study in made if study.account], "account"),
        applications=_groups(made, "application"),
        studies=made,
        findings=_findings(made),
        changes=_changes(made),
        history=_history(random, saved),
        not_counted=[
            NotCounted("cancelled", 41, 9),
            NotCounted("failed", 12, 4),
            NotCounted("resized", 1, 1),
        ],
        exploring=[
            ExploringSpent("site", "", 412.5, saved),
            ExploringSpent("partition", "batch", 398.0, None),
            ExploringSpent("account", "climate", 251.25, 1830.0, "north"),
            ExploringSpent("user", "mgarcia", 19.5, -3.2),
            ExploringSpent("user", HOSTILE_ATTRIBUTE, 0.25, None),
        ],
        site_defaults=[
            SiteDefault(
                "lustre-client", {"max_rpcs_in_flight": 32}, {"max_rpcs_in_flight": "16"}, 4, 6, 5,
                0.88, 0.8, 0.97, 0.79, 0.99, 1.02,
            ),
            SiteDefault(
                "romio", {"cb_nodes": 8, "romio_cb_write": "enable"}, None, 9, 14, 11,
                0.74, 0.67, 0.82, 0.59, 1.031, 1.09, [Judge(made[3].study_id, 1.031)],
            ),
        ],
    )  # fmt: skip


def empty() -> Report:
    """The first night of a site: nobody has used it."""
    hours = NodeHours(0.0, None, None, None, None, None, None, None)
    nothing = Gain("not_yet", "There is no run.", None, None, None, 0.95, 0, 0, None, None)
    return Report(
        SCHEMA, "A new site", _NIGHT.isoformat(), _NIGHT.isoformat(),
        (_NIGHT + timedelta(days=1)).isoformat(), 1, 0.05,
        Group("site", 0, 0, 0, nothing, hours), [], [], [], [], [], [], [], [], [],
    )  # fmt: skip


def nights(seed: int = 7, number: int = 30) -> list[Night]:
    """The index's lines of so many nights, the oldest first; the first ones claim nothing."""
    whole = report(seed)
    lines = []
    for index in range(number):
        first = _NIGHT - timedelta(days=number - 1 - index)
        share = (index + 1) / number
        claimed = share > 0.3
        gain = (
            _gain("faster", 0.124 * share, 0.03 / share, int(900 * share), int(70 * share))
            if claimed
            else _gain("not_yet", 0.02, 0.1, int(900 * share), int(70 * share))
        )
        hours = whole.total.node_hours
        lines.append(
            Night(
                f"{first:%Y-%m-%d}",
                whole.site,
                first.isoformat(),
                (first + timedelta(days=1)).isoformat(),
                2 + int(10 * share),
                int(7 * share),
                int(whole.total.runs * share),
                gain,
                NodeHours(
                    hours.used * share,
                    _times(hours.saved, share**2),
                    _times(hours.low, share**2),
                    _times(hours.high, share**2),
                    None,
                    None,
                    None,
                    None,
                ),
                index % 4,
                3 + index % 3,
            )
        )
    return lines


def _times(number: float | None, factor: float) -> float | None:
    return None if number is None else number * factor


def _plan(index: int) -> _Plan:
    plan = _PLANS[index % len(_PLANS)]
    if index < len(_PLANS):
        return plan
    return (f"{plan[0]}-{index // len(_PLANS)}", *plan[1:])


def _gain(verdict: Verdict, share: float, half: float, tuned: int, controls: int) -> Gain:
    reasons = {
        "faster": "Yuen's interval of log time lies above zero.",
        "slower": "Yuen's interval of log time lies below zero: the default was quicker since the "
        "file system changed.",
        "not_yet": "Too few control runs since the choice.",
        "no_effect": "The interval lies within 2 % of zero.",
        "unclear": "The trimmed means say faster, the node-hours say slower: a few runs of the "
        "tuned parametrization took very long.",
    }
    known = controls > 1
    return Gain(
        verdict,
        reasons[verdict],
        share if known else None,
        share - half if known else None,
        share + half if known else None,
        0.95,
        tuned,
        controls,
        2.2 * half / 1.9 if known else None,
        round(controls * 3.1) + 9 if verdict == "not_yet" and known else None,
    )


def _study(random: Random, number: int, plan: _Plan) -> Study:
    application, user, account, nodes, base, gain, noise, runs, verdict = plan
    points = _points(random, base, gain, noise, runs)
    chosen = _chosen(random, gain) if runs > 30 else {}
    tuned = sum(point.chosen for point in points)
    controls = sum(point.role == "control" for point in points if point.ordinal > 50)
    half = 3.1 * noise * math.sqrt(1 / max(tuned, 1) + 1 / max(controls, 1)) / 1.3
    half = {"no_effect": 0.014, "not_yet": max(half, abs(gain) + 0.03)}.get(verdict, half)
    hour = base * nodes / 3600
    used = sum(point.elapsed for point in points) * nodes / 3600
    by_chosen = tuned * hour * gain
    exploring = sum(
        (point.elapsed - base) * nodes / 3600
        for point in points
        if point.role in ("design", "search")
    )
    cost = controls * hour * gain
    saved = by_chosen - exploring - cost
    spread = 1.7 * noise * hour * math.sqrt(max(tuned, 1)) + 0.1 * abs(by_chosen)
    measured = runs > 1
    return Study(
        study_id=number,
        application=application,
        user=user,
        account=account,
        accelerator="romio",
        context={"nodes": str(nodes), "partition": "compute", "cpus_per_node": "128"},
        epoch=2 if verdict == "slower" else 1,
        phase="settled" if tuned else "search" if runs > 20 else "baseline",
        runs=runs + runs // 40,
        counted=runs,
        failed=runs // 40,
        gain=_gain(verdict, gain, half, tuned, controls),
        node_hours=NodeHours(
            used,
            saved if measured else None,
            saved - spread if tuned else None,
            saved + spread if tuned else None,
            by_chosen if measured else None,
            exploring if measured else None,
            cost if measured else None,
            hour * gain * 120 if tuned else None,
            0.95 if tuned else None,
        ),
        parameters=_parameters(chosen, told=runs > 100) if runs else [],
        chosen_since="2026-08-03T04:11:00+00:00" if tuned else None,
        convergence=_convergence(random, gain, runs),
        points=points[-500:],
        importance=_importance(gain, runs),
        surfaces=_surfaces(random, base, gain) if runs > 100 else [],
        noise=_noise(noise, runs),
        inside_job=_inside_job(application, user, runs) if runs and number % 3 == 1 else None,
        measures=_measures(base, gain, noise, controls, tuned) if runs else [],
        cleaned=_cleaned(base, gain, noise) if tuned and number % 2 else None,
        uid=_uid(user),
    )


def _uid(user: str) -> int:
    return 1000 + sorted({plan[1] for plan in _PLANS}).index(user)


def _cleaned(base: float, gain: float, noise: float) -> Cleaned:
    def estimate(seconds: float) -> Estimate:
        return Estimate(seconds, seconds * (1 - noise / 2), seconds * (1 + noise / 2))

    return Cleaned(0.42, estimate(base), estimate(base * (1 - gain)))


def _measures(base: float, gain: float, noise: float, controls: int, tuned: int) -> list[Measured]:
    def of(value: float, runs: int) -> Measured.Typical | None:
        if not runs:
            return None
        if runs <= 5:
            return Measured.Typical(value, None, None, runs)
        return Measured.Typical(value, value * (1 - noise), value * (1 + noise), runs)

    default, chosen = 4 + controls, min(tuned, 90)
    return [
        Measured(name, of(value, default), of(value * (1 - less * gain), chosen))
        for name, value, less in (
            ("elapsed", base, 1.0),
            ("asked_written_bytes", 8.4e10, 0.0),
            ("marked_seconds", base / 10, 3.0),
            ("write_calls", 81_920.0, 0.0),
        )
    ]


def _inside_job(application: str, user: str, runs: int) -> InsideJob:
    """An agent that doubles one lever until it no longer helps, and leaves the other alone."""
    hostile = application == HOSTILE
    ways = [min(8 << period // 3, 32) for period in range(40)]
    return InsideJob(
        ordinal=runs,
        node=user if hostile else "n0042",
        policy="settling",
        levers=[HOSTILE if hostile else "max_rpcs_in_flight", "max_pages_per_rpc"],
        began=[8, 256],
        entries=[
            InsideJob.Entry(10.0 * (period + 1), 2e7 * way**0.5, [way, 256], int(period in (3, 6)))
            for period, way in enumerate(ways)
        ],
    )


def _points(random: Random, base: float, gain: float, noise: float, runs: int) -> list[RunPoint]:
    made = []
    for ordinal in range(1, runs + 1):
        if ordinal <= 4:
            role, factor = "baseline", 1.0
        elif ordinal <= 50:
            role = "control" if ordinal % 10 == 0 else "design" if ordinal <= 24 else "search"
            reach = 0.45 * (1 - ordinal / 60)
            factor = 1.0 if role == "control" else 1 + random.uniform(-max(gain, 0.03), reach)
        else:
            role = "control" if ordinal % 12 == 0 else "settled"
            factor = 1.0 if role == "control" else 1 - gain
        outlier = random.random() < 0.02
        elapsed = base * factor * random.lognormvariate(0, noise) * (1.5 if outlier else 1.0)
        at = _NIGHT - timedelta(hours=7 * (runs - ordinal))
        made.append(RunPoint(ordinal, at.isoformat(), elapsed, role, role == "settled", outlier))
    return made


def _chosen(random: Random, gain: float) -> dict[str, Value]:
    if abs(gain) < 0.01:
        return dict(_DEFAULT)
    return {
        name: settings[-1] if random.random() < 0.6 else _DEFAULT[name]
        for name, settings in _SPACE.items()
    } | {"cb_nodes": 4, "cb_config_list": "*:*"}


def _parameters(chosen: dict[str, Value], *, told: bool) -> list[Parameter]:
    shares = [0.44, 0.31, 0.09, 0.06, 0.02, 0.0]
    return [
        Parameter(name, default, chosen.get(name), share if told else None)
        for (name, default), share in zip(_DEFAULT.items(), shares, strict=True)
    ]


def _convergence(random: Random, gain: float, runs: int) -> list[tuple[int, float]]:
    if runs < 5:
        return []
    known, best = [(4, 1.0)], 1.0
    for at in range(6, min(runs, 60), 3):
        best = max(1 - max(gain, 0.0), best - random.random() * max(gain, 0.004) / 4)
        known.append((at, best))
    return known


def _importance(gain: float, runs: int) -> Importance:
    if runs <= 100:
        return Importance(f"With {min(runs, 20)} parametrizations tested nothing can be said.")
    share = Importance.Share
    if abs(gain) < 0.01:
        return Importance("The forest explains nothing that it has not seen: skill -0.08.",
                          forest_skill=-0.08)  # fmt: skip
    return Importance(
        None,
        [share(["cb_nodes"], 0.61), share(["cb_nodes", "cb_config_list"], 0.78)],
        [share(["cb_nodes"], 0.44), share(["cb_config_list"], 0.17),
         share(["cb_nodes", "cb_config_list"], 0.12), share(["romio_ds_write"], 0.03)],
        [share(["cb_nodes"], 0.39, 0.31, 0.46), share(["cb_config_list"], 0.31, 0.24, 0.4),
         share(["cb_buffer_size"], 0.07, 0.02, 0.11)],
        0.71,
    )  # fmt: skip


def _surfaces(random: Random, base: float, gain: float) -> list[Surface]:
    def surface(x: str, y: str) -> Surface:
        columns, rows = _SPACE[x], _SPACE[y]
        elapsed = [
            [
                base * (1.25 - (0.25 + gain) * (i / (len(columns) - 1) + j / (len(rows) - 1)) / 2)
                for i in range(len(columns))
            ]
            for j in range(len(rows))
        ]
        measured = [
            (columns[i], rows[j], elapsed[j][i], random.randint(1, 9))
            for i in range(len(columns))
            for j in range(len(rows))
            if random.random() < 0.5
        ]
        deviation = [[0.05] * len(columns) for _ in rows]
        return Surface(x, y, columns, rows, elapsed, deviation, measured)

    return [surface("cb_nodes", "cb_config_list"), surface("cb_buffer_size", "romio_ds_write")]


def _noise(noise: float, runs: int) -> Noise:
    if runs < 5:
        return Noise(None, None, None, None, None)
    return Noise(noise, 0.31 if noise < 0.15 else 0.004, 0.22, 0.018, noise >= 0.15)


def _groups(studies: list[Study], by: str) -> list[Group]:
    names = sorted({getattr(study, by) for study in studies})
    made = []
    for name in names:
        members = [study for study in studies if getattr(study, by) == name]
        made.append(_group(name, members, members[0].gain))
    return made


def _group(name: str, studies: list[Study], gain: Gain) -> Group:
    def summed(part: str) -> float:
        return sum(getattr(study.node_hours, part) or 0.0 for study in studies)

    saved, spread = summed("saved"), 0.12 * abs(summed("saved")) + 2
    return Group(
        name,
        len(studies),
        sum(study.phase == "settled" for study in studies),
        sum(study.runs for study in studies),
        gain,
        NodeHours(
            summed("used"), saved, saved - spread, saved + spread, summed("by_chosen"),
            summed("exploring"), summed("controls"), summed("a_month"), 0.95,
        ),
    )  # fmt: skip


_FINDINGS: list[tuple[str, int, str, str]] = [
    (
        "already_best",
        5,
        "After 388 runs no parametrization is quicker than the default by more than 2 %.",
        'Nothing: stopping here is a result. `io-autotune pin study:6 --why "best"` ends them too.',
    ),
    (
        "regression",
        3,
        "Tuned runs take 7.0 % more time than control runs since 9 November (2.9 to 11.1 % more).",
        (
            '`io-autotune reset study:4 --why "slower since 9 November"` starts afresh; until then '
            "`io-autotune pin study:4` with the default's values."
        ),
    ),
    (
        "drift",
        0,
        "The default's own time rose by 12 % on 2 November, within a day, and stays there.",
        "Ask what changed on the file system; the comparison goes on within the new epoch.",
    ),
    (
        "mixed",
        6,
        "The default's runs gather around two times, 1,020 s and 1,910 s: different work.",
        "Give each its own `--io-autotune=app=NAME`, or `io-autotune accept study:7` if it is one.",
    ),
    (
        "quarantine",
        9,
        "4 of 5 runs with cb_buffer_size=67108864 ran out of memory.",
        "Nothing for now: it is not tried again. Lower the parameter's limit in the catalogue.",
    ),
    (
        "waste",
        4,
        "Exploring has cost 31 node-hours and found nothing in 50 runs.",
        '`io-autotune pin study:5 --why "no gain in 50 runs"` stops it.',
    ),
    (
        "quiet",
        8,
        "No run for 63 days.",
        "Nothing: history is kept for when it comes back.",
    ),
]


def _findings(studies: list[Study]) -> list[Finding]:
    order = get_args(FindingKind)
    return [
        Finding(kind, studies[at].study_id, studies[at].application, what, do)  # type: ignore[arg-type]
        for kind, at, what, do in sorted(_FINDINGS, key=lambda each: order.index(each[0]))
        if at < len(studies)
    ]


def _changes(studies: list[Study]) -> list[Change]:
    texts = [
        (2, "is claimed to be faster for the first time: 31.0 % less time (26.4 to 35.6 %)."),
        (3, "was faster, and is slower now."),
        (10, "settled after 50 exploring runs."),
        (8, "is new."),
    ]
    made = [Change(studies[at].study_id, studies[at].application, what)
            for at, what in texts if at < len(studies)]  # fmt: skip
    return [*made, Change(None, None, "38 runs more than the night before, 2 of them failed.")]


def _history(random: Random, saved: float) -> list[tuple[str, float]]:
    nights, total = [], 0.0
    for index in range(214):
        total += (index / 214 - 0.12) * random.uniform(0.4, 1.6)
        nights.append(((_NIGHT - timedelta(days=213 - index)).isoformat(), total))
    return [(night, so_far * saved / total) for night, so_far in nights]
