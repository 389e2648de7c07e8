"""The point of it all: a real MPI-IO application gets faster, and the numbers shown are true."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from statistics import fmean, median

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from harness import ALICE, Json, Site, asked, hints

APPLICATION = "tuning-strided"
BLOCK_SIZE, BLOCKS = 4096, 8000
"""For each of four ranks: so many that beside other load it is still the collective exchange that
takes the time, most of which the hints can save. Blocks of 512 bytes cost so many calls of their
own that MPICH 5, whose exchange is quicker, was as fast without the hints."""
STUDY = [*STUDY_SETTINGS, "budget=16", "proof.after=0"]
"""By small steps the search may come upon no hint in eight runs that saves anything. What is
compared are settled runs, so that there is no proof before."""
SETTLED_RUNS = 5
"""As many tuned runs and as many control runs at least are compared."""
LEAD = 3
"""The pinned values are faster when they have won so many more pairs of runs than the default."""
MOST_PAIRS = 15
"""Other work on the host can turn a pair around, but not most of so many: the exchange that the
pinned values save takes most of the application's time."""
FASTER = {"romio_cb_write": "disable", "romio_ds_write": "disable"}
"""Each rank writes its own blocks: the exchange between ranks is what takes the time here."""
MOST_RUNS = 120
"""A study whose gain is not proven by then, however loaded the machine, has none."""

STRIDED = f"""
srun --mpi=pmi2 --ntasks=4 strided --file $HOME/strided.$SLURM_JOB_ID \\
    --block-size {BLOCK_SIZE} --blocks {BLOCKS} --collective --print-hints
"""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose studies search for long enough."""
    with cluster_of_its_own(request, "tuning", study_settings=STUDY) as site:
        yield site


def test_what_was_chosen_is_in_force_and_the_application_is_faster_by_its_own_clock(
    site: Site,
) -> None:
    """The application times its collective writes itself, under the default and as pinned.

    Promise: a wrong gain is reported
    """
    app = "tuning-pinned"
    run_of(site, app)
    site.pin(app, FASTER)
    clocks = ("write_seconds", "elapsed")
    lead = dict.fromkeys(clocks, 0)
    pairs: list[tuple[Json, Json]] = []
    while min(lead.values()) < LEAD:
        assert len(pairs) < MOST_PAIRS, f"the pinned values are not faster: {lead} of {pairs}"
        tuned = run_of(site, app)
        assert tuned["differs"], tuned["reason"]
        untuned = run_of(site, app, "mode=observe")
        pairs.append((tuned, untuned))
        for clock in clocks:
            lead[clock] += 1 if tuned[clock] < untuned[clock] else -1
    (status,) = site.ask(ALICE, "status", app)
    counted = [run for run in site.history(app, ALICE) if run["state"] == "counted"]
    assert status["counted"] == len(counted) == 2 * len(pairs) + 1


def run_of(site: Site, app: str, *more: str) -> Json:
    """Run the application once, and return its run, which counts, with what it printed itself."""
    job = site.sbatch(STRIDED, asked(app, *more), "--ntasks=4")
    run = site.counted(job)
    printed: Json = json.loads(site.output(job))
    if run["differs"]:
        check_hints_in_force(site, run, printed["hints"])
    return {**run, **printed}


@pytest.mark.slow
def test_a_study_tunes_and_its_settled_runs_beat_the_default(site: Site) -> None:
    """Promise: a wrong gain is reported"""
    judged: list[Json] = []
    explored_with_hints = 0
    # The evidence holds at any look, so the study is asked after every run.
    while not (is_settled(judged) and is_proven(site)):
        assert len(judged) < MOST_RUNS, f"no gain is proven: {site.study(APPLICATION, ALICE)}"
        job = site.sbatch(STRIDED, asked(APPLICATION), "--ntasks=4")
        run = site.judged(job)
        assert run["state"] == "counted", f"job {job.job_id}: {run['verdict']}"
        judged.append(run)
        if run["role"] in {"design", "search"} and run["differs"]:
            check_hints_in_force(site, run, json.loads(site.output(job))["hints"])
            explored_with_hints += 1

    # A host that gets busy for good can open another epoch, which begins anew. What is left of the
    # design may come among the steps of the search.
    order = {"baseline": 0, "design": 1, "search": 1, "settled": 2}
    phases = [(run["epoch"], order[run["phase"]]) for run in judged]
    assert sorted(phases) == phases, f"the phases go back: {phases}"
    assert explored_with_hints > 0, "no explored run differed from the default"

    study = site.study(APPLICATION, ALICE)
    assert study["gain"]["gain"] > 0.0, f"the tuned runs are slower: {study}"
    assert study["differs"], "the default itself is recommended"
    check_numbers(study, site.history(APPLICATION, ALICE))
    # What was drawn is kept with the decision: nobody else's secret is needed to make it again.
    for role in ("control", "settled"):
        drawn = next(run for run in reversed(judged) if run["role"] == role)
        (replay,) = site.ask(ALICE, "explain", str(drawn["job_id"]), "--replay")
        assert replay["same"], replay


def is_settled(judged: list[Json]) -> bool:
    """Tell whether there are the runs to compare. What they took plays no part in it."""
    settled = [run["role"] for run in judged if run["phase"] == "settled"]
    return min(settled.count("settled"), settled.count("control")) >= SETTLED_RUNS


def is_proven(site: Site) -> bool:
    gain = site.study(APPLICATION, ALICE)["gain"]
    return gain is not None and bool(gain["resolved"])


def check_hints_in_force(site: Site, run: Json, in_force: dict[str, str]) -> None:
    """Compare what ROMIO says was in force with what `explain` says was given."""
    detail = site.ask(ALICE, "explain", str(run["job_id"]))[0]
    given = {key: str(value) for key, value in detail["run"]["differs"].items()}
    (file,) = detail["delivery"]["files"]
    assert hints(file["content"]) == given, "the file holds what differs, and nothing else"
    # ROMIO turns some hints into what they come to, on one host with four ranks.
    for name in ("cb_buffer_size", "romio_cb_write", "romio_ds_write", "ind_wr_buffer_size"):
        if name in given:
            assert in_force[name] == given[name], f"{name} is not in force: {in_force}"
    applied = detail["run"]["applied"]
    assert applied["kind"] == "parametrization"
    assert applied["parametrization"] == detail["run"]["parametrization"]


def check_numbers(study: Json, history: list[Json]) -> None:
    """Compute the numbers of `status` again from the runs that `history` lists one by one."""
    counted = [run for run in history if run["state"] == "counted"]
    assert study["counted"] == len(counted)
    settled = compared(counted, "settled")
    groups = {
        "default": [run for run in counted if run["role"] in {"baseline", "control"}],
        "control": settled["control"],
        "tuned": settled["settled"],
    }
    for name, runs in groups.items():
        elapsed = [run["elapsed"] for run in runs]
        assert study[name]["n"] == len(elapsed), f"n of {name}"
        mean = study[name]["mean"]
        is_theirs = math.isclose(mean, fmean(elapsed), rel_tol=1e-9) if elapsed else mean is None
        assert is_theirs, f"mean of {name}: {mean}"
    low, high = study["gain"]["interval"]
    assert 0.0 < low < study["gain"]["gain"] < high
    said = study["assessment"]["gain"]
    assert said["verdict"] == "faster"
    assert (said["share"], said["low"], said["high"]) == (study["gain"]["gain"], low, high)
    # A claim is of the proof's runs until the settled ones show more.
    is_proof = "before the search had ended" in (said["reason"] or "")
    of = compared(counted, "search") if is_proof else settled
    assert said["control_runs"] <= len(of["control"])
    assert said["tuned_runs"] <= len(of["settled"])
    # What users would compute themselves: typical runs of both kinds.
    typical = [median(run["elapsed"] for run in of[name]) for name in ("settled", "control")]
    share = 1.0 - typical[0] / typical[1]
    assert low <= share <= high, f"{said}: typical runs say {share}"


def compared(counted: list[Json], phase: str) -> dict[str, list[Json]]:
    """Return the runs of a phase that the default is compared by, by their role."""
    return {
        role: [run for run in counted if (run["phase"], run["role"]) == (phase, role)]
        for role in ("settled", "control")
    }
