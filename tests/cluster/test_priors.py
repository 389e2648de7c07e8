"""Studies begin from what others of their accelerator have learnt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from harness import ALICE, BOB, ROOT, Json, Site, asked

NO_HOME = ("--chdir=/tmp", "--output=/dev/null")
FAST = {"romio_cb_read": "disable"}
POINTS: tuple[dict[str, str], ...] = (
    FAST,
    {**FAST, "cb_nodes": "4"},
    {"romio_cb_read": "enable"},
    {"cb_nodes": "4"},
    {"romio_cb_write": "enable"},
    {"romio_cb_write": "disable"},
)
"""With the default, enough for a source."""
READS_DISABLED = 'grep -qs "romio_cb_read disable" "$ROMIO_HINTS"'
GAINS = f"{READS_DISABLED} && exec sleep 0.2; exec sleep 1"
LOSES = f"{READS_DISABLED} && exec sleep 2; exec sleep 1"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster on which nobody has learnt anything."""
    settings = tuple(one for one in STUDY_SETTINGS if one != "prior=off")
    with cluster_of_its_own(request, "priors", study_settings=settings) as site:
        yield site


def run_one(site: Site, body: str, app: str, user: str = ALICE) -> Json:
    """Run a job of an application; return its run."""
    return site.counted(site.sbatch(body, asked(app), *NO_HOME, user=user))


def learn(site: Site, body: str, app: str) -> None:
    """Let a study of ALICE's know its default and six other points."""
    for _ in range(2):
        assert run_one(site, body, app)["role"] == "baseline"
    for point in POINTS:
        site.pin(app, point)
        assert run_one(site, body, app)["role"] == "pinned"


def explored(site: Site, body: str, app: str, runs: int) -> list[Json]:
    """Let BOB's study run; return its exploring runs."""
    all_runs = [run_one(site, body, app, BOB) for _ in range(runs)]
    return [run for run in all_runs if run["role"] in ("design", "search")]


def on_others_word(runs: list[Json]) -> list[Json]:
    """Return the runs that were made because other studies promised something."""
    return [run for run in runs if run["role"] == "design" and " expect it " in run["reason"]]


def test_two_siblings_shorten_the_third_and_who_is_contrary_pays_one_run(site: Site) -> None:
    """Attack (service): Two studies of another user say that a parametrization is fast, and for a
    study that begins from them it is the slowest.
    Outcome: One run goes on the others' word, and one more at the most is slow by it; users are
    told no names.
    """
    first = explored(site, GAINS, "prior-before", 5)[0]
    assert "other stud" not in first["reason"], "nobody has learnt anything"

    for app in ("prior-one", "prior-two"):
        learn(site, GAINS, app)
    first, *later = explored(site, GAINS, "prior-three", 8)
    assert first["role"] == "design"
    assert first["reason"].startswith("2 other studies of this accelerator at this site expect it")
    assert first["differs"]["romio_cb_read"] == "disable", first["differs"]
    assert on_others_word(later) == []
    believed = [
        run for run in later if "of what 2 other studies of this accelerator" in run["reason"]
    ]
    assert believed, [run["reason"] for run in later]
    for run in (first, believed[0]):
        replayed = site.ask(BOB, "explain", str(run["job_id"]), "--replay")
        assert [one["same"] for one in replayed] == [True], replayed
        told = site.tuner(BOB, "explain", str(run["job_id"]))
        assert "2 other studies" in told.stdout, told.stdout + told.stderr
        assert "what is known by 2 studies of other users" in told.stdout, told.stdout
        for name in ("prior-one", "prior-two", ALICE):
            assert name not in told.stdout + told.stderr
        told = site.tuner(ROOT, "explain", str(run["job_id"]))
        assert "(prior-one), study" in told.stdout, told.stdout + told.stderr

    # Two sources whose best is this one's worst.
    contrary = explored(site, LOSES, "prior-contrary", 10)
    slow = [run for run in contrary if run["differs"].get("romio_cb_read") == "disable"]
    assert len(on_others_word(contrary)) == 1
    assert slow[0] == contrary[0]
    assert len(slow) <= 2, [run["differs"] for run in contrary]


def test_a_site_that_wants_no_priors_has_none(site: Site) -> None:
    service_toml = site.paths.service_toml
    before = service_toml.read_text(encoding="utf-8")
    assert "[study]" in before
    after = before.replace("[study]", '[study]\nprior = "off"')
    service_toml.write_text(after, encoding="utf-8")
    site.restart("io-autotuned")
    first = explored(site, GAINS, "prior-four", 5)[0]
    assert "other stud" not in first["reason"], first["reason"]
