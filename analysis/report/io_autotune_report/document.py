"""The report as data: what the page, the JSON, the CSV and the mail show.

One :class:`Report` a night. Everything that is shown anywhere is a field here, so that the page and
the files cannot differ. Shares are fractions (0.12 is 12 %), times are seconds, node-hours are
elapsed times nodes over 3600, instants are ISO 8601 in UTC. A field that is ``None`` is not known,
and whoever shows it says so. The JSON has the same fields; ``SCHEMA`` changes its
number when a field changes its meaning or goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SCHEMA = "io-autotune-report/2"

Value = str | int | float
"""A parameter's value, as the catalogue spells it."""

PHASES = {
    "baseline": "first runs",
    "design": "exploring",
    "search": "exploring",
    "settled": "chosen",
    "pinned": "pinned",
}
"""What people are told of a study's phase, as ``io-autotune status`` tells it."""


def phase_in_words(phase: str) -> str:
    """A phase as people are told it; one that is not known is told as it is."""
    return PHASES.get(phase, phase)


Verdict = Literal["faster", "slower", "not_yet", "no_effect", "unclear"]
"""What may be said of a gain.

``faster`` and ``slower`` are claims that the error rate is spent on. ``not_yet``: too little data.
``no_effect``: the interval lies within what is worth telling apart. ``unclear``: the claim and the
node-hours have different signs, or the runs contradict what the claim assumes; ``reason`` says
which.
"""


@dataclass(frozen=True)
class Gain:
    """The gain of what ran under a chosen parametrization against control runs near in time.

    As a share of the default's: 0.2 is a run that takes a fifth less.
    """

    verdict: Verdict
    reason: str
    """The verdict's ground, in one sentence for the page."""
    share: float | None
    low: float | None
    high: float | None
    level: float
    """Of the interval, over all looks of the study's life."""
    tuned_runs: int
    control_runs: int
    detectable: float | None
    """The smallest gain that these numbers of runs would have shown, with probability 0.8."""
    runs_needed: int | None
    """About how many more runs it takes to see a gain of the size of the estimate."""
    evidence: float = 1.0
    """An e-value against no effect, the study's looks included: 20 is what a 5 % error rate asks of
    one study alone; of many at once the false discovery rate asks for more."""
    objective: str = "elapsed"
    """What it is of: elapsed, or a measure, with `` maximised`` of whose reciprocal it is."""


@dataclass(frozen=True)
class NodeHours:
    """What tuning saved and cost, summed over runs (arithmetic, not robust)."""

    used: float
    """By all runs that counted."""
    saved: float | None
    """In all: ``by_chosen`` less ``exploring`` less ``controls``; negative is a loss."""
    low: float | None
    high: float | None
    by_chosen: float | None
    """Saved by runs under a chosen parametrization."""
    exploring: float | None
    """Spent by design and search runs beyond what the default would have taken; may be negative."""
    controls: float | None
    """Spent by control runs beyond what the chosen parametrization would have taken."""
    a_month: float | None
    """What a month is worth at the present rate of runs, once settled."""
    level: float | None = None
    """Of the interval from ``low`` to ``high``, over all looks; ``None`` where there is none."""


@dataclass(frozen=True)
class Importance:
    """What the parameters explain, three ways; empty where skill or data do not suffice."""

    @dataclass(frozen=True)
    class Share:
        """One parameter's, or one pair's, share of the variance."""

        parameters: list[str]
        share: float
        low: float | None = None
        high: float | None = None

    silent: str | None
    """Why nothing is said, if nothing is."""
    r2: list[Share] = field(default_factory=list)
    """Cao et al. 2018, table 5: one-hot least squares; first and second parameter over 0.6."""
    anova: list[Share] = field(default_factory=list)
    """With interactions of two."""
    forest: list[Share] = field(default_factory=list)
    """Permutation importance of a random forest."""
    forest_skill: float | None = None
    """Its cross-validated R2."""


@dataclass(frozen=True)
class Surface:
    """The Gaussian process's expectation over two important parameters, the others as chosen."""

    x: str
    y: str
    x_values: list[Value]
    y_values: list[Value]
    elapsed: list[list[float]]
    """Expected elapsed, a row for each of ``y_values``."""
    deviation: list[list[float]]
    """One standard deviation of its logarithm."""
    runs: list[tuple[Value, Value, float, int]]
    """What was measured there: x, y, mean elapsed, runs."""


@dataclass(frozen=True)
class Noise:
    """How runs of one parametrization scatter."""

    cv: float | None
    """Pooled coefficient of variation of the parametrizations with two runs or more."""
    levene_p: float | None
    bartlett_p: float | None
    outliers: float | None
    """The share of runs beyond Tukey's fences of their parametrization."""
    varies: bool | None
    """Whether noise differs between parametrizations, by Levene at 5 %."""


@dataclass(frozen=True)
class Estimate:
    """What the service estimates of a run, in the objective's own numbers."""

    mean: float
    low: float
    """Of the 95 % interval."""
    high: float


@dataclass(frozen=True)
class Cleaned:
    """Estimates where others fare as ever: the noise that they explain is taken out."""

    share: float
    """Of the noise's variance, that how other runs fared meanwhile explains."""
    default: Estimate
    recommended: Estimate | None


@dataclass(frozen=True)
class Measured:
    """One of the measures of a study's latest runs: what they read, wrote, computed, reported."""

    @dataclass(frozen=True)
    class Typical:
        """Over runs of one parametrization."""

        median: float
        low: float | None
        """Of its 95 % interval, by order statistics; ``None`` below six runs."""
        high: float | None
        runs: int

    name: str
    """``elapsed``, or as ``io-autotune history`` names it."""
    default: Typical | None
    chosen: Typical | None
    """``None`` while nothing is chosen, too, and where the default is."""


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A run, as the figures draw it."""

    ordinal: int
    at: str
    elapsed: float
    role: str
    chosen: bool
    """Whether it had what is chosen, or pinned, and was made since then."""
    outlier: bool


@dataclass(frozen=True)
class Parameter:
    """A parameter's default and what was chosen."""

    name: str
    default: Value | None
    """``None`` where the parameter does not exist under the default."""
    chosen: Value | None
    importance: float | None
    """Its own share of the variance beside the others', by ANOVA, or else by the forest."""


@dataclass(frozen=True)
class InsideJob:
    """What an agent on one node did inside a job: the newest of the study's last runs with one."""

    @dataclass(frozen=True)
    class Entry:
        """One or several periods in a row."""

        seconds: float
        """From the agent's start to the end of the last of them."""
        bandwidth: float
        """Bytes a second, their mean."""
        values: list[int]
        """What was set at the end, in the order of the levers."""
        moves: int

    ordinal: int
    """The run, as in ``points``."""
    node: str
    policy: str
    levers: list[str]
    began: list[int]
    """The levers' values when the job began."""
    entries: list[Entry]
    """The oldest first."""


@dataclass(frozen=True)
class Study:
    """One optimisation: application, context and accelerator."""

    study_id: int
    application: str
    user: str
    account: str | None
    accelerator: str
    context: dict[str, str]
    epoch: int
    phase: str
    """baseline, design, search or settled; or pinned."""
    runs: int
    """In all of its epochs; ``status`` counts those of the current one."""
    counted: int
    failed: int
    gain: Gain
    node_hours: NodeHours
    parameters: list[Parameter]
    chosen_since: str | None
    convergence: list[tuple[int, float]]
    """After how many runs, the lowest mean of those known, over the default's."""
    points: list[RunPoint]
    """At most 500: the newest, and of the older ones every so-manieth."""
    importance: Importance
    surfaces: list[Surface]
    noise: Noise
    cluster: str | None = None
    """``None`` where the service has one."""
    inside_job: InsideJob | None = None
    """``None`` where no agent tunes inside its jobs."""
    measures: list[Measured] = field(default_factory=list)
    """Of the current epoch; empty where runs are not measured."""
    cleaned: Cleaned | None = None
    """``None`` where nothing is known of other runs."""
    full_name: str | None = None
    """What the application is called in full, if its name is not all of it."""
    uid: int | None = None
    """Its owner's user id, or what stands for one who was forgotten; ``None`` if they were
    forgotten since the report was made, or an earlier version kept it."""


@dataclass(frozen=True)
class Group:
    """The sum over an application, user, account, accelerator or cluster, or over the site."""

    name: str
    studies: int
    settled: int
    runs: int
    gain: Gain
    node_hours: NodeHours
    uid: int | None = None
    """Of a user's group, as in their studies."""


FindingKind = Literal[
    "regression",
    "quarantine",
    "drift",
    "mixed",
    "ineffective",
    "nothing_to_win",
    "elapsed_worse",
    "unreported",
    "default_lost",
    "other",
    "waste",
    "already_best",
    "quiet",
]
"""The most urgent first."""


ASK_NOBODY: frozenset[FindingKind] = frozenset(
    {"quarantine", "ineffective", "nothing_to_win", "already_best", "quiet"}
)
"""What tuning has dealt with by itself: a result, or a note for who wonders. The other kinds need a
person."""


@dataclass(frozen=True)
class Finding:
    """Something that a person should look at, or may stop looking at."""

    kind: FindingKind
    study_id: int
    application: str
    what: str
    """What is so, with its figures."""
    do: str
    """What to do, a command where there is one."""

    @property
    def needs_a_person(self) -> bool:
        """Whether it asks something of somebody."""
        return self.kind not in ASK_NOBODY


@dataclass(frozen=True)
class NotCounted:
    """Runs that were judged in the range and do not count, for one reason."""

    because: str | None
    """A reason of docs/run.md; ``None`` where a service before 0.4 judged."""
    runs: int
    studies: int


BudgetOf = Literal["user", "account", "partition", "site"]
"""Whose budget for exploring it is."""


@dataclass(frozen=True)
class ExploringSpent:
    """What exploring runs that started in the range took, of one that has a budget for them."""

    budget_of: BudgetOf
    name: str
    """A user, an account, a partition; empty for the site."""
    node_hours: float
    """Whole runs; of those in flight what they are expected to take."""
    saved: float | None = None
    """The node-hours that tuning has saved them in all, as for their group."""
    cluster: str | None = None
    """Of an account or a partition, where there are several."""


@dataclass(frozen=True)
class Judge:
    """A study that is expected to lose by a site's default."""

    study_id: int
    ratio: float
    """Elapsed over the default's, as its runs let one expect it."""


@dataclass(frozen=True)
class SiteDefault:
    """A setting that the studies of an accelerator have in common, or that an admin made theirs.

    The studies of the user whose study found it do not judge it, and are not counted.
    """

    accelerator: str
    values: dict[str, Value] | None
    """What they have in common, where it differs from the accelerator's default; ``None`` where it
    is nothing."""
    in_force: dict[str, str] | None
    """What an admin made the site's default; ``None`` where it is the accelerator's own."""
    users: int = 0
    """Other users whose studies find it harmless."""
    studies: int = 0
    """Studies that judge it."""
    gain: int = 0
    """Of these, those whose whole 95 % interval is below 1."""
    ratio: float | None = None
    """Elapsed over the default's for one more application."""
    low: float | None = None
    """The lower end of its 95 % interval."""
    high: float | None = None
    """The upper end."""
    smallest: float | None = None
    """The smallest ratio that a study expects."""
    largest: float | None = None
    """The largest."""
    worst: float | None = None
    """The largest upper end of a study's interval: none loses more."""
    losers: list[Judge] = field(default_factory=list)
    """The studies that are expected to lose, the largest loss first."""
    cluster: str | None = None
    """Where there are several."""


@dataclass(frozen=True)
class Change:
    """What is different from the night before."""

    study_id: int | None
    application: str | None
    what: str


@dataclass(frozen=True)
class Report:
    """A night, or a range."""

    schema: str
    site: str
    generated_at: str
    first: str
    """The range's first instant: a midnight by the site's clock, with its distance from UTC."""
    last: str
    """Its end, exclusive, likewise."""
    look: int
    """How many nightly looks the error rate has been spent on so far, this one included."""
    false_discovery_rate: float
    """Held over the studies that something is claimed of."""
    total: Group
    clusters: list[Group]
    """None where there is one."""
    accelerators: list[Group]
    users: list[Group]
    accounts: list[Group]
    applications: list[Group]
    studies: list[Study]
    findings: list[Finding]
    changes: list[Change]
    history: list[tuple[str, float]]
    """Night, node-hours saved in total up to it."""
    not_counted: list[NotCounted] = field(default_factory=list)
    """The most frequent reason first."""
    exploring: list[ExploringSpent] = field(default_factory=list)
    """Who spent most first; empty where exploring has no budget."""
    since: str | None = None
    """When the first of the runs was judged that the sums have, or in a user's own report when the
    first that is drawn began; ``None`` without runs, or if an earlier version kept the report."""
    before: str | None = None
    """The night that ``changes`` are since; ``None`` if there was none, or an earlier version kept
    the report."""
    site_defaults: list[SiteDefault] = field(default_factory=list)
    """Of each accelerator that the service has looked at, where studies have a setting in common,
    or one is in force."""


@dataclass(frozen=True)
class Night:
    """A line of the index of nights: a report in short, and where it lies."""

    folder: str
    """Beside the index; the page is ``index.html`` in it."""
    site: str
    first: str
    last: str
    studies: int
    settled: int
    runs: int
    gain: Gain
    node_hours: NodeHours
    changes: int
    findings: int
    to_do: int | None = None
    """The findings that need a person; ``None`` in a night that an earlier version has kept."""

    @classmethod
    def of(cls, report: Report, folder: str) -> Night:
        """The line for ``report``, whose files lie in ``folder``."""
        total = report.total
        return cls(
            folder=folder,
            site=report.site,
            first=report.first,
            last=report.last,
            studies=total.studies,
            settled=total.settled,
            runs=total.runs,
            gain=total.gain,
            node_hours=total.node_hours,
            changes=len(report.changes),
            findings=len(report.findings),
            to_do=sum(finding.needs_a_person for finding in report.findings),
        )
