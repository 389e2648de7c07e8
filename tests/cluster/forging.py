"""Submits jobs with requests that our plugin would not make."""

from __future__ import annotations

import re
from pathlib import Path

from devcluster import command
from harness import ALICE, Job, Site


def make_forger(site: Site) -> Path:
    """Return a slurm.conf of the user's own, by which sbatch loads the forger in our place."""
    home = site.paths.home(ALICE)
    source = Path(__file__).with_name("forge.c")
    plugin = home / "forge.so"
    command.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(plugin), str(source)])
    plugstack = home / "plugstack.conf"
    plugstack.write_text(f"required {plugin}\n", encoding="utf-8")
    text = site.paths.slurm_conf.read_text(encoding="utf-8")
    conf = home / "slurm.conf"
    ours = f"PlugStackConfig={plugstack}"
    conf.write_text(re.sub(r"(?m)^PlugStackConfig=.*$", ours, text), encoding="utf-8")
    return conf


def forge(site: Site, forger: Path, request: str) -> Job:
    """Submit a job that brings this request to the root prolog."""
    env = {"SLURM_CONF": str(forger), "FORGED_REQUEST": request}
    return site.sbatch("echo done", env=env)
