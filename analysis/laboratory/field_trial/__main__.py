"""``make -C analysis field-trial``: python -m field_trial --root DIR --python BIN --kept DIR.

What is measured of an application is kept in a file of its own, and is not measured again: an
interrupted trial goes on with the next application.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from devcluster import Cluster, ClusterError, files
from devcluster.network import Namespace

from field_trial import jobs, measure, records, storages
from field_trial.listing import Application, ListError, read
from field_trial.page import page
from field_trial.records import Record

HERE = Path(__file__).parent
LIST = HERE / "trial.toml"
CATALOGUE = HERE.parents[2] / "deploy" / "accelerators.d"
PACKAGES = (
    *("glusterfs-server", "lammps", "netcdf-bin", "openfoam", "python3-h5py-mpi", "rclone"),
    *("rocksdb-tools", "samtools"),
)
STUDY_SECONDS, BLOCKS_SECONDS = 240.0, 130.0
"""No job is submitted later than so long after the study's or the blocks' first: together they stay
far below ten minutes."""


def main() -> int:
    """Measure what has not been measured yet, and write the page."""
    parser = argparse.ArgumentParser(prog="field_trial", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    parser.add_argument("--python", type=Path, required=True, help="bin of the jobs' environment")
    parser.add_argument("--kept", type=Path, required=True, help="where what is measured is kept")
    parser.add_argument("--programs", type=Path, required=True, help="where the program wire is")
    parser.add_argument("--report", type=Path, help="gets the page; without it it is printed")
    parser.add_argument("--only", action="append", help="measure this application anew, alone")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument("--runs", type=int, default=60, help="of a study, at most")
    parser.add_argument("--blocks", type=int, default=8, help="of what is compared, at most")
    options = parser.parse_args()
    options.kept = options.kept.resolve()
    try:
        applications = read(LIST, CATALOGUE)
        if not options.page_only:
            _measure(applications, options)
    except (ClusterError, ListError, OSError, RuntimeError) as error:
        print(f"field_trial: {error}", file=sys.stderr)
        return 1
    kept = {
        application.name: records.load(options.kept / f"{application.name}.json")
        for application in applications
        if (options.kept / f"{application.name}.json").exists()
    }
    text = page(applications, kept)
    if options.report is None:
        print(text)
    else:
        options.report.write_text(text, encoding="utf-8")
    return 0


def _measure(applications: list[Application], options: argparse.Namespace) -> None:
    options.kept.mkdir(parents=True, exist_ok=True)
    inputs = options.kept / "inputs"
    for application in applications:
        path = options.kept / f"{application.name}.json"
        wanted = application.name in options.only if options.only else not path.exists()
        if wanted:
            _say(f"\n{application.name}: {application.what}")
            record = Record(
                application.name,
                began=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
                kernel=platform.release(),
                versions=_versions(options.python),
            )
            try:
                _make_inputs(application, options.python, inputs)
                _one(application, record, inputs, options)
            except (measure.TooManyFailures, RuntimeError, subprocess.CalledProcessError) as error:
                record.problem = str(error)
                _say(f"  {application.name} did not run to its end: {error}")
            record.save(path)


def _one(
    application: Application, record: Record, inputs: Path, options: argparse.Namespace
) -> None:
    """Measure one application on a cluster of its own: studies learn from those beside them."""
    cluster = Cluster(options.root, nodes=1, say=_say)
    storages.leave(options.root)
    cluster.destroy()
    cluster.up()
    try:
        directory = cluster.paths.scratch / "field-trial"
        directory.mkdir()
        directory.chmod(0o755)
        surroundings = storages.Surroundings(
            directory=directory,
            inputs=inputs,
            names=application.inputs,
            client=Namespace(options.root.resolve()).name,
            programs=options.programs,
            python=options.python,
        )
        with storages.made(application.storage, surroundings) as place, _allowed(cluster, place):
            shutil.chown(place.work, jobs.USER)
            for path in place.work.rglob("*"):
                shutil.chown(path, jobs.USER)
            shared = cluster.paths.scratch / "shared"
            shutil.copytree(HERE / "programs", shared / "programs")
            if (inputs / "cavity").exists():
                shutil.copytree(inputs / "cavity", shared / "cavity")
            places = {
                "programs": str(shared / "programs"),
                "inputs": str(shared),
                "python": str(options.python / "python"),
            }
            runner = jobs.Jobs(cluster, application, place, places)
            measure.study(runner, application, record, options.runs, STUDY_SECONDS, _say)
            measure.blocks(runner, application, record, options.blocks, BLOCKS_SECONDS, _say)
    finally:
        cluster.destroy()


@contextmanager
def _allowed(cluster: Cluster, place: storages.Place) -> Iterator[None]:
    path = cluster.paths.etc / "node.toml"
    if place.node_toml:
        files.write(path, place.node_toml, mode=0o644)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _make_inputs(application: Application, python: Path, inputs: Path) -> None:
    """Make those inputs that are not there yet, whole or not at all."""
    for name in application.inputs:
        if inputs.exists() and any(path.name.split(".")[0] == name for path in inputs.iterdir()):
            continue
        _say(f"  makes the input {name}")
        draft = inputs.parent / f"making-{name}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        argv = [str(python / "python"), "-m", "field_trial.inputs", name, str(draft)]
        subprocess.run(argv, check=True, cwd=HERE.parent)
        inputs.mkdir(exist_ok=True)
        for path in draft.iterdir():
            path.rename(inputs / path.name)
        draft.rmdir()


def _versions(python: Path) -> dict[str, str]:
    """Return the versions of the programs: Debian's, and those of the jobs' Python."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *PACKAGES]
    freeze = [str(python / "pip"), "list", "--format=freeze", "--disable-pip-version-check"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    lines += subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.replace(
        "==", " "
    )
    return dict(line.split(" ", 1) for line in lines.splitlines())


def _say(message: str) -> None:
    print(
        f"{time.strftime('%H:%M:%S')} {message}" if message.strip() else "",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
