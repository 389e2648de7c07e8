"""The programs in Rust: compiled once, in a clean root of the oldest suite, for all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from packages import inputs
from packages.rooms import DIRECTORY, Room
from packages.suites import OLDEST
from packages.tree import Source

NEWEST_GLIBC = (2, 34)
"""The C library of EL 9: no program may need a later one."""
CRATES = ("io-autotuned", "io-autotune-cli", "io-autotune-node", "io-autotune-collector")
NAMES = ("io-autotuned", "io-autotune", "io-autotune-node", "io-autotune-collector")
RUST, SOURCES, TREE, TARGET, OUT = "/rust", "/crates", "/tree", "/target", "/programs"
"""Where the root has the compiler, the crates, the tree, and what is made."""
ROOM = Room(OLDEST.name, "rust", ("gcc", "libc6-dev"))

COMPILE = f"""
export PATH={RUST}/bin:$PATH CARGO_HOME=/tmp/cargo SQLX_OFFLINE=true
mkdir -p $CARGO_HOME
cat > $CARGO_HOME/config.toml <<'TEXT'
[source.crates-io]
replace-with = "vendored-sources"
[source.vendored-sources]
directory = "{SOURCES}"
TEXT
export RUSTFLAGS="--remap-path-prefix={TREE}=io-autotune --remap-path-prefix={SOURCES}=crates"
cd {TREE}
nice cargo build --quiet --release --frozen --target-dir {TARGET} \
    {" ".join(f"--package {crate}" for crate in CRATES)}
install -m 755 -t {OUT} {" ".join(f"{TARGET}/release/{name}" for name in NAMES)}
"""


def built(source: Source, tree: Path, anew: bool = False) -> Path:
    """Return a directory with the programs, compiled where they are not there of this tree.

    Raises:
        ValueError: a program needs a later C library than the oldest distribution has.

    """
    place = DIRECTORY / "programs" / source.rust()
    if anew:
        place = place.with_name(f"{place.name}.anew")
        shutil.rmtree(place, ignore_errors=True)
    if not place.exists():
        new = place.with_name(f"{place.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        binds = {
            inputs.toolchain(): RUST,
            inputs.crates(source, tree): SOURCES,
            tree: TREE,
            new: OUT,
        }
        ROOM.run(["/bin/bash", "-euc", COMPILE], binds=binds)
        for name in NAMES:
            check(new / name)
        new.rename(place)
    return place


def check(program: Path) -> None:
    """Check which versions of the C library's symbols a program or library needs.

    Raises:
        ValueError: a later one than NEWEST_GLIBC.

    """
    command = ["objdump", "--dynamic-syms", str(program)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in said.splitlines():
        needed = re.search(r"\(?GLIBC_(\d+)\.(\d+)", line)
        if needed and tuple(map(int, needed.groups())) > NEWEST_GLIBC:
            oldest = ".".join(map(str, NEWEST_GLIBC))
            raise ValueError(f"{program.name} needs a later C library than {oldest}: {line}")
