"""What a job finds in its environment: the user's own comes first, and all ranks agree."""

from __future__ import annotations

import pytest
from harness import ALICE, Job, Site, asked, hints, lines

PIN = {"cb_nodes": "2", "romio_cb_write": "disable"}


@pytest.mark.parametrize("where", ["submission", "script", "unset"])
def test_a_variable_that_the_user_has_set_is_left_alone(site: Site, where: str) -> None:
    """Promise: a variable that the user set is overwritten"""
    app = f"environment-user-{where}"
    site.pinned(app, PIN)
    own = site.paths.home(ALICE) / "own_hints"
    own.write_text("cb_nodes 1\n", encoding="utf-8")
    env, change, seen = {
        "submission": ({"ROMIO_HINTS": str(own)}, ":", str(own)),
        "script": ({}, f"export ROMIO_HINTS={own}", str(own)),
        "unset": ({}, "unset ROMIO_HINTS", "none"),
    }[where]
    job = site.sbatch(
        f"{change}\nsrun -n1 bash -c 'echo ${{ROMIO_HINTS-none}}'", asked(app), env=env
    )
    run = site.judged(job)
    assert lines(site.output(job)) == [seen], "the step does not see what the user wanted"
    assert run["applied"] == {"kind": "user", "variables": ["ROMIO_HINTS"]}
    assert run["state"] == "not_counted"
    assert "ROMIO_HINTS" in run["verdict"]
    assert site.study(app)["counted"] == 1, "only the first run, before the pin, counts"


def test_a_variable_that_is_not_the_users_is_set(site: Site) -> None:
    app = "environment-ours"
    site.pinned(app, PIN)
    job = site.sbatch("cat $ROMIO_HINTS\nsrun -n1 bash -c 'cat $ROMIO_HINTS'", asked(app))
    run = site.judged(job)
    once = [f"{name} {value}" for name, value in PIN.items()]
    assert lines(site.output(job)) == once * 2, "the script and the step get the same hints"
    assert run["applied"]["kind"] == "parametrization"
    assert run["state"] == "counted", run["verdict"]


def test_two_nodes_share_one_run_and_one_set_of_hints(site: Site) -> None:
    app = "environment-two-nodes"
    layout = ("--nodes=2", "--ntasks-per-node=2")
    study = site.pinned(app, PIN, *layout)
    assert study["context"]["nodes"] == "2"
    show = 'echo "$SLURMD_NODENAME $SLURM_PROCID $ROMIO_HINTS" $(<$ROMIO_HINTS)'
    job = site.sbatch(f"srun bash -c '{show}'", asked(app), *layout)
    run = site.judged(job)
    ranks = [line.split(maxsplit=2) for line in lines(site.output(job))]
    assert sorted(rank for _node, rank, _hints in ranks) == ["0", "1", "2", "3"]
    assert {node for node, _rank, _hints in ranks} == {"n1", "n2"}
    for node, _rank, seen in ranks:
        path, *content = seen.split()
        assert f"/{node}/{job.job_id}/" in path, "a rank has another node's file"
        assert content == ["cb_nodes", "2", "romio_cb_write", "disable"]
    assert len(site.runs(job)) == 1
    assert run["applied"]["kind"] == "parametrization", run["applied"]
    assert run["state"] == "counted", run["verdict"]


def test_a_step_on_another_node_alone_has_that_nodes_hints(site: Site) -> None:
    app = "environment-elsewhere"
    layout = ("--nodes=2", "--ntasks-per-node=1")
    site.pinned(app, PIN, *layout)
    # From the second node back to the first: what is inherited is never another node's.
    show = 'echo "$SLURMD_NODENAME $ROMIO_HINTS" $(<$ROMIO_HINTS)'
    there = f"srun -N1 -n1 -w n2 --overlap bash -c '{show}; srun -N1 -n1 -w n1 --overlap {{}}'"
    (site.paths.home(ALICE) / "show").write_text(f"#!/bin/bash\n{show}\n", encoding="utf-8")
    job = site.sbatch(there.format("bash ./show"), asked(app), *layout)
    site.counted(job)
    seen = [line.split() for line in lines(site.output(job))]
    assert [node for node, *_ in seen] == ["n2", "n1"], "the nested step did not come back"
    for node, path, *content in seen:
        assert f"/{node}/{job.job_id}/" in path, "a rank has another node's file"
        assert content == ["cb_nodes", "2", "romio_cb_write", "disable"]
    reports = {report["job"]["node"]: report for report in site.explain(job)["reports"]}
    assert set(reports) == {"n1", "n2"}, "not every node has reported"
    (step,) = reports["n2"]["steps"]
    ours = {"ROMIO_HINTS": "set", "MPI_IO_IN_FORCE": "set", "IO_MARKS_FILE": "set"}
    assert (step["nodes"], step["variables"]) == (1, ours)


HET = """
#SBATCH --ntasks=1 --exclusive
#SBATCH hetjob
#SBATCH --ntasks=1 --exclusive
show='echo "$SLURMD_NODENAME" "${ROMIO_HINTS-none}" $([ -z "$ROMIO_HINTS" ] || cat "$ROMIO_HINTS")'
srun --het-group=0,1 bash -c "$show" | sort
"""


def test_a_heterogeneous_job_is_one_run_of_its_first_component(site: Site) -> None:
    app = "environment-het"
    first = site.sbatch(HET, asked(app))
    assert site.judged(first)["state"] == "counted"
    site.pin(app, PIN)
    job = site.sbatch(HET, asked(app))
    site.counted(job)
    carrier, later = (line.split(maxsplit=2) for line in lines(site.output(job)))
    assert carrier[2] == "cb_nodes 2 romio_cb_write disable"
    assert later[1:] == ["none"], "the later component has a path of another node"
    everyone = {entry["job_id"] for entry in site.history(app)}
    assert everyone == {first.job_id, job.job_id}, "a later component has a run of its own"


def test_observing_measures_and_applies_nothing(site: Site) -> None:
    app = "environment-observed"
    site.pinned(app, PIN)
    job = site.sbatch("sleep 1; echo ${ROMIO_HINTS-none}", asked(app, "mode=observe"))
    run = site.judged(job)
    assert lines(site.output(job)) == ["none"]
    assert run["role"] == "observe"
    assert run["applied"] == {"kind": "default"}
    assert run["elapsed"] >= 1.0


def test_a_nested_job_never_gets_its_parents_hints(site: Site) -> None:
    outer, inner = "environment-outer", "environment-inner"
    site.pinned(outer, PIN)
    site.pinned(inner, {"cb_nodes": "8"})
    show = "--wrap='echo ${ROMIO_HINTS-none} $([ -z $ROMIO_HINTS ] || cat $ROMIO_HINTS)'"
    submit = "sbatch --parsable --output=%j.out --ntasks=1"
    job = site.sbatch(
        f"cat $ROMIO_HINTS\n"
        f"{submit} {asked(inner)} {show}\n"
        f"{submit} --io-autotune=mode=off {show}\n"
        f"{submit} {show}\n",
        asked(outer),
        "--output=%j.out",
    )
    assert site.judged(job)["applied"]["kind"] == "parametrization"
    printed = [line for line in lines(site.output(job)) if "io-autotune" not in line]
    assert hints("\n".join(printed[:-3])) == PIN, "the outer job has its own hints"
    tuned, off, plain = (Job(int(line), "") for line in printed[-3:])

    run = site.judged(tuned)
    assert run["application"] == inner
    path, *content = site.output(tuned).split()
    assert f"/{tuned.job_id}/" in path, "the file is another job's"
    assert content == ["cb_nodes", "8"]

    assert site.ended(off)["JobState"] == "COMPLETED"
    assert lines(site.output(off)) == ["none"]
    assert site.runs(off) == []

    # It inherits neither the hints nor the wish to be tuned.
    assert site.ended(plain)["JobState"] == "COMPLETED"
    assert lines(site.output(plain)) == ["none"]
    assert site.runs(plain) == []


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_step_cannot_be_tuned_alone(site: Site, node: str) -> None:
    job = site.sbatch(
        f"srun -N1 -n1 -w {node} --io-autotune printenv ROMIO_HINTS",
        "--nodes=2",
        "--job-name=environment-half",
    )
    site.ended(job)
    assert "untuned" in site.output(job), "srun does not say why the step stays untuned"
    assert site.runs(job) == []
