"""Has the service's own code assess a generated site, as after each verdict."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).parents[3]
CONFIG = """
[listen]
unix = "/nowhere"
[database]
url = {url}
[accelerators]
directory = {accelerators}
default = "romio"
[slurm]
cluster = "site"
sources = []
"""


def assess(url: str) -> None:
    """Assess the studies without an assessment; ``IO_AUTOTUNED`` names another program.

    ``url`` is a libpq URL or connection string. Raises OSError if the program is not built (``cargo
    build --release -p io-autotuned``), CalledProcessError if it fails (it says why).
    """
    program = os.environ.get("IO_AUTOTUNED", str(ROOT / "target/release/io-autotuned"))
    # The service only takes URLs.
    known = f"postgres:///?{urlencode(conninfo_to_dict(url))}"
    accelerators = json.dumps(str(ROOT / "deploy/accelerators.d"))
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as config:
        config.write(CONFIG.format(url=json.dumps(known), accelerators=accelerators))
        config.flush()
        subprocess.run([program, "--config", config.name, "--assess"], check=True)
