"""What the MPI library itself says is in force: shown, and compared with what was asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import ALICE, MPIEXEC_OPENMPI, Job, Json, Site, asked, lines

LIBRARIES = Path(__file__).resolve().parents[2] / "build" / "stage" / "lib" / "io-autotune"
OMPIO = "accelerator=ompio"
STRIDED = "--file $HOME/$SLURM_JOB_ID.data --block-size 512 --blocks 500 --collective"


@pytest.fixture(scope="module")
def libraries(site: Site) -> dict[str, str]:
    """Put the profiling libraries where users can reach them; return the path of each MPI's."""
    placed = {}
    for mpi in ("mpich", "openmpi"):
        library = site.paths.scratch / f"mpi-in-force-{mpi}.so"
        library.write_bytes((LIBRARIES / library.name).read_bytes())
        library.chmod(0o755)
        placed[mpi] = str(library)
    return placed


def strided(library: str, *more: str) -> str:
    """Return the body of a job of MPICH with the profiling library preloaded."""
    return f"export LD_PRELOAD={library}; srun --mpi=pmi2 strided {STRIDED} {' '.join(more)}"


PROGRAMS = {
    "mpich": "srun --mpi=pmi2 strided",
    "openmpi": f"{MPIEXEC_OPENMPI} strided-openmpi --no-slurm",
}


@pytest.mark.parametrize("mpi", PROGRAMS)
def test_a_job_with_the_library_tells_its_seconds_in_mpi_io(
    site: Site, libraries: dict[str, str], mpi: str
) -> None:
    app = f"mpi-io-{mpi}"
    body = f"export LD_PRELOAD={libraries[mpi]}\n" + f"{PROGRAMS[mpi]} {STRIDED}\n" * 2
    site.run(body, asked(app), "--ntasks=4")
    study = site.study(app, ALICE)["study_id"]
    site.ask(ALICE, "objective", str(study), "mpi-io", "--why", "I/O is a part of it")
    job = site.sbatch(body, asked(app), "--ntasks=4")
    run = site.counted(job)
    # Open MPI 6 with PMIx 7 prints which of its own parameters have other names now.
    said = [json.loads(line) for line in lines(site.output(job)) if line.startswith("{")]
    assert len(said) == 2
    measures = run["measures"]
    # Two programs, one after the other, of four ranks that run at the same time.
    asked_for = sum(one["bytes"] for one in said)
    assert measures["mpi_io_written_bytes"] == measures["mpi_io_read_bytes"] == asked_for
    of_rank_0 = sum(one["write_seconds"] + one["read_seconds"] for one in said)
    assert 0.5 * of_rank_0 < measures["mpi_io_seconds"] < run["elapsed"], (of_rank_0, measures)
    assert site.study(app, ALICE)["objective"] == "mpi_io_seconds"
    assert "in MPI-IO: " in site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout


def told(site: Site, job: Job) -> dict[str, Json]:
    """Return what the job's only report tells of each parameter."""
    (report,) = site.explain(job)["reports"]
    return {one["parameter"]: one for one in report.get("told", [])}


def test_hints_in_force_are_shown_as_the_library_reports_them(
    site: Site, libraries: dict[str, str]
) -> None:
    app = "in-force-romio"
    site.run("true", asked(app), "--ntasks=4")
    site.pin(app, {"romio_ds_write": "disable", "cb_nodes": "8", "cb_config_list": "*:*"})
    job = site.sbatch(strided(libraries["mpich"]), asked(app), "--ntasks=4")
    run = site.counted(job)
    assert run["applied"]["kind"] == "parametrization"
    found = told(site, job)
    assert found["romio_ds_write"] == {
        "parameter": "romio_ds_write",
        "name": "romio_ds_write",
        "asked": "disable",
        "in_force": "disable",
        "as_asked": True,
    }
    # A limit: there are only four ranks.
    assert (found["cb_nodes"]["asked"], found["cb_nodes"]["in_force"]) == ("8", "4")
    assert found["cb_nodes"]["as_asked"]
    assert found["cb_buffer_size"]["in_force"] == "16777216", "what was not asked for is told too"
    shown = site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout
    assert "romio_ds_write = disable (on n1, by the library)" in shown


def test_a_program_that_sets_a_hint_itself_is_noticed(
    site: Site, libraries: dict[str, str]
) -> None:
    app = "in-force-overridden"
    body = strided(libraries["mpich"], "--hint romio_ds_write=disable")
    default = site.run(body, asked(app), "--ntasks=4")
    assert default["state"] == "counted", "by default nothing is asked of the parameter"
    for value in ("enable", "enable"):
        site.pin(app, {"romio_ds_write": value, "cb_buffer_size": "4194304"})
        job = site.sbatch(body, asked(app), "--ntasks=4")
        run = site.judged(job)
        assert site.shown(job)["JobState"] == "COMPLETED"
        assert run["state"] == "not_counted", "it did not have what it would count for"
        assert "romio_ds_write was disable and not enable" in run["verdict"]
        found = told(site, job)
        assert not found["romio_ds_write"]["as_asked"]
        assert found["cb_buffer_size"]["as_asked"]
    shown = site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout
    assert "by the library, and it was given enable" in shown
    (study,) = site.ask(ALICE, "status", app)
    (warning,) = [text for text in study["warnings"] if "has no effect" in text]
    assert warning.startswith("romio_ds_write has no effect here: 2 of the latest runs")


def test_a_value_that_only_the_ranks_are_given_is_noticed_by_the_control_variables(
    site: Site, libraries: dict[str, str]
) -> None:
    app = "in-force-ompio"

    def body(*given: str) -> str:
        return (
            f"{MPIEXEC_OPENMPI} -x LD_PRELOAD={libraries['openmpi']} "
            f"env {' '.join(given)} strided-openmpi --no-slurm {STRIDED}"
        )

    site.run("true", asked(app, OMPIO), "--ntasks=4")
    site.pin(app, {"fcoll": "dynamic_gen2", "bytes_per_agg": "4194304"})
    job = site.sbatch(body(), asked(app, OMPIO), "--ntasks=4")
    run = site.counted(job)
    found = told(site, job)
    assert found["fcoll"]["in_force"] == "dynamic_gen2"
    assert found["bytes_per_agg"]["in_force"] == "4194304"
    job = site.sbatch(
        body("OMPI_MCA_io_ompio_bytes_per_agg=1048576"), asked(app, OMPIO), "--ntasks=4"
    )
    run = site.judged(job)
    assert run["state"] == "not_counted"
    assert "bytes_per_agg was 1048576 and not 4194304" in run["verdict"]


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("nothing", "true"),
        ("garbage", "head -c 200000 /dev/urandom > $MPI_IO_IN_FORCE; true"),
        ("removed", 'rm -f "$MPI_IO_IN_FORCE"; test -e "$MPI_IO_IN_FORCE"'),
        ("a lot", "yes romio_ds_write disable | head -c 2000000 > $MPI_IO_IN_FORCE; true"),
    ],
)
def test_whatever_a_user_writes_there_the_job_is_reported(site: Site, what: str, body: str) -> None:
    app = f"in-force-{what.replace(' ', '-')}"
    site.run("true", asked(app))
    site.pin(app, {"romio_ds_write": "disable"})
    job = site.sbatch(body, asked(app))
    site.counted(job)
    expected = {"romio_ds_write"} if what == "a lot" else set()
    assert set(told(site, job)) == expected
    assert not site.spooled()
