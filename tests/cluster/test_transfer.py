"""Studies leave one service and go on in another."""

from __future__ import annotations

import json
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from devcluster import files, render
from devcluster.users import SERVICE_USER
from harness import ALICE, BOB, ROOT, Json, Site, asked, await_true, lines
from services import service_beside

DATABASE = "io_autotune_elsewhere"


class Elsewhere:
    """Another service, with an empty database."""

    def __init__(self, site: Site, config: Path) -> None:
        """Know where it is."""
        self.site = site
        self._config = f"--config={config}"

    def tuner(self, user: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``io-autotune`` against it."""
        return self.site.tuner(user, self._config, *arguments)

    def ask(self, user: str, *arguments: str) -> Json:
        """Return what it answers."""
        return self.site.ask(user, self._config, *arguments)


@pytest.fixture
def elsewhere(site: Site) -> Iterator[Elsewhere]:
    """Start it."""
    text = render.service_toml(site.paths, site.record())
    text = text.replace(f"/{render.DATABASE}?", f"/{DATABASE}?")
    site.sql(f'create database {DATABASE} owner "{SERVICE_USER}"')
    config = site.paths.etc / f"{DATABASE}-client.toml"
    try:
        with service_beside(site, DATABASE, text) as unix:
            clients = site.paths.client_toml.read_text(encoding="utf-8")
            files.write(config, render.asking(clients, [f"unix:{unix}"]), mode=0o644)
            yield Elsewhere(site, config)
    finally:
        site.sql(f"drop database {DATABASE} with (force)")


@pytest.fixture
def directory(site: Site) -> Iterator[Path]:
    """Make a directory that root writes and users read."""
    path = site.paths.run / "transfer"
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


NUMBERS = {"run_id", "study_id", "study"}
STAYS_BEHIND = {"decided_by", "order"}
"""Of a run: who ordered it is told by the audit and the orders of where it ran."""


def without_numbers(value: Json) -> Json:
    """Return an answer without what numbers rows of one database, and without when it was asked."""
    if isinstance(value, dict):
        kept = {key: without_numbers(part) for key, part in value.items()}
        return {
            key: part
            for key, part in kept.items()
            if not (key in NUMBERS and isinstance(part, int))
        }
    if isinstance(value, list):
        return [without_numbers(part) for part in value]
    return value


def without(keys: set[str], value: Json) -> Json:
    """Return an answer without these keys."""
    if isinstance(value, dict):
        return {key: without(keys, part) for key, part in value.items() if key not in keys}
    return [without(keys, part) for part in value] if isinstance(value, list) else value


def test_a_study_goes_on_elsewhere_with_all_that_it_knows(
    site: Site, elsewhere: Elsewhere, directory: Path
) -> None:
    app = "moves"
    runs = [site.run("cat ${ROMIO_HINTS:-/dev/null}", asked(app)) for _ in range(5)]
    site.run("exit 3", asked(app))
    site.pin(app, {"cb_nodes": "2"})
    runs.append(site.run("true", asked(app)))
    number = str(site.study(app)["study_id"])

    printed = site.tuner(ALICE, "export", app)
    assert (printed.returncode, printed.stderr) == (0, "io-autotune: exported 1 study\n")
    assert '"version":1' in lines(printed.stdout)[0]
    file = directory / "study.jsonl"
    site.ask(ROOT, "status", app)
    done = site.tuner(ROOT, "export", number, "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert file.read_text(encoding="utf-8") == printed.stdout

    would = elsewhere.ask(ROOT, "import", str(file), "--why", "moved", "--dry-run")
    (study,) = would["studies"]
    assert (study["application"], study["study_id"], study["runs"]) == (app, None, 7)
    assert elsewhere.ask(ROOT, "status") == []
    (study,) = elsewhere.ask(ROOT, "import", str(file), "--why", "moved")["studies"]
    assert (study["user"], study["skipped"]) == (ALICE, False)

    assert elsewhere.tuner(ROOT, "export", "--all").stdout == printed.stdout
    for command in (("status", app), ("show", app), ("history", app)):
        there = without_numbers(elsewhere.ask(ALICE, *command))
        assert there == without_numbers(site.ask(ALICE, *command)), command
    for run in runs:
        job = str(run["job_id"])
        explained = [one.ask(ALICE, "explain", job) for one in (elsewhere, site)]
        there, here = (without(STAYS_BEHIND, without_numbers(one)) for one in explained)
        assert there == here, job
        (replay,) = elsewhere.ask(ALICE, "explain", job, "--replay")
        assert replay["same"], replay
    (line,) = elsewhere.ask(ROOT, "audit")
    assert (line["action"], line["why"], line["uid"]) == ("import", "moved", 0)
    done = elsewhere.tuner(ROOT, "undo", str(line["audit_id"]), "--why", "a try")
    assert done.returncode == 4, done.stdout

    again = elsewhere.tuner(ROOT, "import", str(file), "--why", "again")
    assert (again.returncode, "--skip-existing" in again.stderr) == (4, True), again.stderr
    (study,) = elsewhere.ask(ROOT, "import", str(file), "--why", "again", "--skip-existing")[
        "studies"
    ]
    assert study["skipped"]
    assert elsewhere.tuner(ROOT, "export", "--all").stdout == printed.stdout


def test_a_broken_file_is_refused_with_its_place_and_leaves_nothing(
    site: Site, elsewhere: Elsewhere, directory: Path
) -> None:
    """Attack (service): An admin imports a file that is cut, malformed, or of a newer version.
    Outcome: It is refused with the place of what is wrong, and leaves nothing behind.
    """
    app = "moves-not"
    for _ in range(2):
        site.run("true", asked(app))
    text = site.tuner(ALICE, "export", app).stdout
    file = directory / "broken.jsonl"
    for broken, said in (
        (text.replace('"job_id":', '"job":', 1), "run.job"),
        (text[: len(text) // 2], "line "),
        (text.replace('"version":1', '"version":9'), "upgrade the service"),
        (text.rsplit("\n", 2)[0], "it ends before its end"),
    ):
        file.write_text(broken, encoding="utf-8")
        done = elsewhere.tuner(ROOT, "import", str(file), "--why", "a try")
        assert (done.returncode, said in done.stderr) == (4, True), f"{said}: {done.stderr}"
        assert elsewhere.ask(ROOT, "status") == []
        left = site.sql("select count(*) from import_chunks", DATABASE)
        assert left == [["0"]], said


def test_a_user_exports_their_own_and_imports_nothing(
    site: Site, elsewhere: Elsewhere, directory: Path
) -> None:
    """Attack (service): A user exports another's study, and imports one.
    Outcome: Both are refused; a user's export has the user's own studies.
    """
    app = "moves-own"
    site.run("true", asked(app))
    site.run("true", asked(app), user=BOB)
    number = str(site.study(app, ALICE)["study_id"])
    done = site.tuner(BOB, "export", number)
    assert (done.returncode, done.stdout) == (4, ""), done.stdout
    # Both have a study of this name; `--all` would be all that other tests have left.
    own = site.tuner(BOB, "export", app).stdout
    records = [json.loads(line) for line in lines(own)]
    owners = {one["study"]["owner_uid"] for one in records if "study" in one}
    assert owners == {pwd.getpwnam(BOB).pw_uid}

    # A service that refuses reads no body: of a large one the client sees but the closed door.
    file = directory / "own.jsonl"
    file.write_text(own, encoding="utf-8")
    done = elsewhere.tuner(BOB, "import", str(file), "--why", "mischief", "--yes")
    assert (done.returncode, "only admins" in done.stderr) == (4, True), done.stderr
    file = directory / "all.jsonl"
    file.write_text(site.tuner(ROOT, "export", "--all").stdout, encoding="utf-8")
    # What changes many asks, and here is nobody to ask.
    done = elsewhere.tuner(ROOT, "import", str(file), "--why", "all")
    assert (done.returncode, "--yes" in done.stderr) == (2, True), done.stderr
    assert elsewhere.ask(ROOT, "status") == []
    elsewhere.ask(ROOT, "import", str(file), "--why", "all", "--yes")
    mine = elsewhere.ask(BOB, "status")
    # One that no start has named has no user's name.
    assert {study["uid"] for study in mine} == {pwd.getpwnam(BOB).pw_uid}
    # A job that is in flight is no knowledge yet.
    job = site.sbatch("sleep 300", asked(app))
    site.started(job)
    await_true("the run", lambda: bool(site.runs(job)))
    done = site.tuner(ALICE, "export", app)
    assert "1 run in flight is left out" in done.stderr
    assert f'"job_id":{job.job_id}' not in done.stdout
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    site.ended(job)


def test_an_export_tells_no_user_which_run_is_a_control_run(site: Site) -> None:
    """Attack (service): A user exports a study of their own while a run is in flight that may be a
    control run.
    Outcome: It is refused until the run has ended; an admin may.
    """
    app = "moves-while-drawn"
    site.run("true", asked(app))
    number = str(site.study(app)["study_id"])
    job = site.sbatch("sleep 300", asked(app))
    site.started(job)
    await_true("the run", lambda: bool(site.runs(job)))
    # As if the study had settled, which takes many runs.
    site.sql(
        "update runs set phase = 'settled', role = 'control'"
        f" where state = 'in_flight' and job_id = {job.job_id}"
    )
    done = site.tuner(ALICE, "export", number)
    assert (done.returncode, "ask an admin" in done.stderr) == (4, True), done.stderr
    assert site.tuner(ROOT, "export", number).returncode == 0
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    site.ended(job)
    site.judged(job)
    assert site.tuner(ALICE, "export", number).returncode == 0
