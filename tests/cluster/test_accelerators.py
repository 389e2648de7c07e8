"""Accelerators beyond ROMIO's: what reaches a job and takes effect; a catalogue that changes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from harness import ALICE, MPIEXEC_OPENMPI, ROOT, Site, asked, await_true, lines

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "accelerators.md"
OMPIO = "accelerator=ompio"
PIN = {"fcoll": "dynamic_gen2", "bytes_per_agg": "4194304", "num_aggregators": "2"}
STRIDED = f"""
{MPIEXEC_OPENMPI} strided-openmpi --no-slurm \\
    --file $HOME/ompio.$SLURM_JOB_ID --block-size 512 --blocks 2000 --collective --print-hints
"""

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


FASTIO = "accelerator=fastio"


def test_the_documentation_makes_an_accelerator(site: Site) -> None:
    """Follow docs/accelerators.md, "A new one in ten minutes"."""
    app = "accelerators-documented"
    (text, *_others) = re.findall(r"```toml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    mine = site.paths.scratch / "fastio.toml"
    mine.write_text(text, encoding="utf-8")
    checked = site.tuner(ALICE, "accelerators", "check", str(mine))
    assert checked.returncode == 0, checked.stderr
    assert "fastio: 3 parameters" in checked.stdout
    file = site.paths.accelerators / "fastio.toml"
    shutil.copy(mine, file)
    try:
        await_true(
            "the accelerator to be there",
            lambda: "fastio" in site.tuner(ALICE, "accelerators", "list").stdout,
        )
        shown = site.tuner(ALICE, "accelerators", "show", "fastio").stdout
        assert "not run on the real thing" in shown
        site.run("true", asked(app, FASTIO))
        site.pin(app, {"mode": "threaded", "threads": "8", "buffer_kib": "1024"})
        job = site.sbatch("env | grep ^FASTIO | sort", asked(app, FASTIO))
        assert site.judged(job)["state"] == "counted"
        seen = lines(site.output(job))
        assert seen == ["FASTIO_BUFFER=1024K", "FASTIO_THREADS=threaded:8"]
        refused = site.tuner(
            ALICE,
            "pin",
            app,
            "buffer_kib=64",
            "threads=8",
            "mode=threaded",
            "--why",
            "the constraint forbids it",
        )
        assert "must hold" in refused.stderr
    finally:
        file.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("accelerator", "pin", "expected"),
    [
        ("unifyfs", {"logio_chunk_size": "65536"}, ["UNIFYFS_LOGIO_CHUNK_SIZE=65536"]),
        ("scr", {"flush": "20", "set_size": "16"}, ["SCR_FLUSH=20", "SCR_SET_SIZE=16"]),
        ("hdf5-subfiling", {"ioc_per_node": "4"}, ["H5FD_SUBFILING_IOC_PER_NODE=4"]),
        (
            "small-read-optimizer",
            {"sequence_length": "50", "prefetch_size": "5242880"},
            ["SRO_PREFETCH_SIZE=5242880", "SRO_SEQUENCE_LENGTH=50"],
        ),
    ],
)
def test_what_is_not_here_is_given_its_variables(
    site: Site, accelerator: str, pin: dict[str, str], expected: list[str]
) -> None:
    app, option = f"accelerators-{accelerator}", f"accelerator={accelerator}"
    site.run("true", asked(app, option))
    site.pin(app, pin)
    job = site.sbatch("env | grep -E '^(UNIFYFS|SCR|H5FD|SRO)_' | sort", asked(app, option))
    assert site.judged(job)["state"] == "counted"
    assert lines(site.output(job)) == expected


def test_what_ompio_is_given_is_in_force_in_open_mpi(site: Site) -> None:
    app = "accelerators-ompio"
    site.run("true", asked(app, OMPIO), "--ntasks=4")
    default = site.sbatch(STRIDED, asked(app, OMPIO, "mode=observe"), "--ntasks=4")
    assert site.judged(default)["applied"] == {"kind": "default"}
    controls = json.loads(lines(site.output(default))[-1])["controls"]
    # What the catalogue calls the default is what Open MPI has without us.
    space = site.ask(ROOT, "accelerators", "show", "ompio")["space"]
    defaults = {parameter["name"]: str(parameter["default"]) for parameter in space}
    for name in ("bytes_per_agg", "grouping_option", "cycle_buffer_size"):
        assert controls[f"io_ompio_{name}"] == defaults[name], f"the default of {name}"
    assert (controls["fcoll"], controls["io_ompio_num_aggregators"]) == ("", "-1")

    site.pin(app, PIN)
    job = site.sbatch(STRIDED, asked(app, OMPIO), "--ntasks=4")
    run = site.counted(job)
    assert run["applied"]["kind"] == "parametrization"
    told = json.loads(lines(site.output(job))[-1])
    assert told["errors"] == 0
    controls = told["controls"]
    assert controls["fcoll"] == "dynamic_gen2"
    assert controls["io_ompio_bytes_per_agg"] == "4194304"
    assert controls["io_ompio_num_aggregators"] == "2"
    assert controls["io_ompio_grouping_option"] == "5", "what was not pinned is left alone"


FORTRAN = """\
cd $(mktemp --directory --tmpdir=$HOME) && cat > records.f90 <<'END'
integer :: i
open(10, file='text')
write(10, '(I8, F12.5)') (i, i * 0.5, i = 1, 40000)
open(11, file='records', form='unformatted')
do i = 1, 4000
  write(11) (j * 0.5d0, j = i, i + 100)
end do
end
END
gfortran -o program records.f90
for file in text records; do
    strace --quiet=all -e trace=write -P $PWD/$file ./program 2>&1 | grep -c write
done
cat text records | md5sum
"""
NETCDF = f"""\
cd $(mktemp --directory --tmpdir=$HOME) && cat > a.cdl <<'END'
netcdf a {{
dimensions: x = 4;
variables: double a(x); double b(x);
data: a = 1, 2, 3, 4; b = 5, 6, 7, 8;
}}
END
run() {{ {MPIEXEC_OPENMPI} -n 1 "$@"; }}
run ncmpigen -o a.nc a.cdl
ncoffsets a.nc | sed -n 's/.*start file offset = *//p'
run strace --follow-forks --quiet=all -o reads -P $PWD/a.nc ncmpidump a.nc > text
sed -n 's/.*pread64(.*, \\([0-9]*\\), 0) .*/\\1/p' reads
md5sum < text
"""
HDF5 = """\
cd $(mktemp --directory --tmpdir=$HOME) && /usr/bin/python3 - <<'END'
import numpy, tables
with tables.open_file("plain", "w") as file:
    file.create_carray("/", "a", obj=numpy.arange(10**6) ** 2, chunkshape=(10**6,))
END
strace --follow-forks --quiet=all -o calls ptrepack --complib blosc --complevel 5 plain:/a packed:/a
grep -cE 'clone3?\\(' calls
stat --format %s packed
/usr/bin/python3 -c 'import tables; print(sum(tables.open_file("packed").root.a[:]))' 2> /dev/null
"""
TWO_RANKS = f"""\
cd $(mktemp --directory --tmpdir=$HOME)
strace --follow-forks --quiet=all -e trace=pwrite64,pwritev -o calls {MPIEXEC_OPENMPI} -n 2 \\
    strided-openmpi --no-slurm --file file --block-size 512 --blocks 500 --collective --keep > told
grep -cE 'pwrite.* = 512$' calls
grep -cE 'pwrite.* = 512000$' calls
md5sum < file
"""


@pytest.mark.parametrize(
    ("spec", "pin", "program", "body"),
    [
        (
            "gfortran@risk",
            {"formatted_buffer_size": "1048576", "unformatted_buffer_size": "2097152"},
            "gfortran",
            FORTRAN,
        ),
        (
            "pnetcdf@risk",
            {"header_read_chunk_size": "1048576", "var_align_size": "65536"},
            "ncmpigen",
            NETCDF,
        ),
        ("blosc@risk", {"nthreads": "8", "shuffle": "NOSHUFFLE"}, "ptrepack", HDF5),
        ("ompio@risk", {"io": "^ompio"}, "mpiexec.openmpi", TWO_RANKS),
    ],
)
def test_a_real_program_does_otherwise_what_it_is_given(
    site: Site, spec: str, pin: dict[str, str], program: str, body: str
) -> None:
    """What it prints last, a checksum of its data, is the same; the numbers before are not."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: deploy/install-deps test")
    app, option = f"accelerators-{program}", f"accelerator={spec}"
    jobs = [site.sbatch(body, asked(app, option), "--ntasks=4")]
    site.counted(jobs[0])
    site.pin(app, pin)
    jobs.append(site.sbatch(body, asked(app, option), "--ntasks=4"))
    run = site.counted(jobs[1])
    assert run["applied"]["kind"] == "parametrization"
    (*default, sum_of_default), (*given, sum_of_given) = (lines(site.output(job)) for job in jobs)
    assert len(default) == len(given) > 0
    assert sum_of_default == sum_of_given
    for before, after in zip(default, given, strict=True):
        assert int(before) != int(after), f"{default} became {given}"


def test_a_variable_of_open_mpi_that_the_user_has_set_is_left_alone(site: Site) -> None:
    """Promise: a variable that the user set is overwritten"""
    app = "accelerators-ompio-user"
    site.run("true", asked(app, OMPIO))
    site.pin(app, PIN)
    job = site.sbatch(
        "env | grep ^OMPI_MCA | sort", asked(app, OMPIO), env={"OMPI_MCA_fcoll": "vulcan"}
    )
    run = site.judged(job)
    assert run["applied"] == {"kind": "user", "variables": ["OMPI_MCA_fcoll"]}
    assert run["state"] == "not_counted"
    assert "OMPI_MCA_fcoll=vulcan" in lines(site.output(job))


def test_the_catalogue_changes_without_a_restart(site: Site) -> None:
    app, option = "accelerators-small", "accelerator=small"
    file = site.paths.accelerators / "small.toml"

    def names() -> list[str]:
        return [entry["name"] for entry in site.ask(ALICE, "accelerators", "list")]

    def values() -> int:
        space = site.ask(ALICE, "accelerators", "show", "small")["space"]
        return len(space[0]["values"])

    file.write_text(SMALL, encoding="utf-8")
    try:
        await_true("the accelerator to be there", lambda: "small" in names())
        site.run("true", asked(app, option))
        site.pin(app, {"depth": "4"})
        job = site.sbatch("echo $SMALL_DEPTH; srun -n1 printenv SMALL_DEPTH", asked(app, option))
        run = site.counted(job)
        assert lines(site.output(job)) == ["4", "4"]
        site.ask(ALICE, "pin", app, "--end", "--why", "a test asks for it")

        # A bad file changes nothing for jobs, and an admin is told of it.
        file.write_text(SMALL.replace("{depth}", "{deep}"), encoding="utf-8")

        def told() -> str | None:
            checks = json.loads(site.tuner(ROOT, "doctor", "--json").stdout)["checks"]
            (check,) = [check for check in checks if check["name"] == "accelerators"]
            return check["detail"] if check["state"] == "failed" else None

        await_true("doctor to tell of the file", lambda: told() is not None)
        assert re.search(r"line 13, column 9: parameter \"deep\" is not among", told() or "")
        assert values() == 3
        checked = site.tuner(ALICE, "accelerators", "check", str(file))
        assert checked.returncode == 1
        assert "small.toml:13:9:" in checked.stderr

        # A value goes: its run does not count any more, the other does, and history has both.
        file.write_text(SMALL.replace("[1, 2, 4]", "[1, 2]"), encoding="utf-8")
        await_true("the value to be gone", lambda: values() == 2)
        run = site.run("true", asked(app, option))
        assert run["epoch"] == 2
        assert run["role"] == "baseline"
        assert "2 of" in run["reason"], f"the default's first run is not known: {run['reason']}"
        assert [entry["epoch"] for entry in site.history(app)] == [1, 1, 2]
        refused = site.tuner(ALICE, "pin", app, "depth=4", "--why", "it was removed")
        assert refused.returncode == 4
        assert "one of 1, 2" in refused.stderr

        # An accelerator that goes while a job runs: its report still counts.
        fence = site.paths.scratch / f"{app}.fence"
        job = site.sbatch(f"until [ -e {fence} ]; do sleep 0.1; done", asked(app, option))
        site.started(job)
        file.unlink()
        await_true("the accelerator to be gone", lambda: "small" not in names())
        fence.touch()
        assert site.judged(job)["state"] == "counted"
    finally:
        file.unlink(missing_ok=True)
