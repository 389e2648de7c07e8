"""Makes the trial's inputs: python -m field_trial.inputs NAME DIRECTORY.

It runs in the environment of the jobs. All inputs follow from fixed seeds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import h5py
import numpy as np
import zarr

SEED = 1
MB = 10**6
TIMES, LATITUDES, LONGITUDES = 240, 192, 288


def stage(directory: Path) -> None:
    """Write many small files and a large one, which nothing compresses."""
    generator = np.random.default_rng(SEED)
    folder = directory / "stage"
    (folder / "small").mkdir(parents=True)
    for number in range(300):
        (folder / "small" / f"{number:03}").write_bytes(generator.bytes(MB // 10))
    (folder / "large").write_bytes(generator.bytes(30 * MB))


def climate(directory: Path) -> None:
    """Write two variables over time, latitude and longitude as compressed netCDF-4."""
    generator = np.random.default_rng(SEED)
    shape = {"time": TIMES, "lat": LATITUDES, "lon": LONGITUDES}
    with h5py.File(directory / "climate.nc", "w") as file:
        for name, length in shape.items():
            file.create_dataset(name, data=np.arange(length, dtype="f4")).make_scale(name)
        for name in ("tas", "pr"):
            variable = file.create_dataset(
                name,
                data=generator.standard_normal(tuple(shape.values())).astype("f4"),
                chunks=(24, 48, 48),
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
            for axis, of_axis in enumerate(shape):
                variable.dims[axis].attach_scale(file[of_axis])


def alignments(directory: Path) -> None:
    """Write half a million reads that fit their place in five chromosomes, sorted, as BAM."""
    generator = np.random.default_rng(SEED)
    length, reads, read_length = 4 * MB, 100_000, 150
    chromosomes = [f"chr{number}" for number in range(1, 6)]
    bases = np.frombuffer(b"ACGT", dtype="u1")
    qualities = np.arange(ord("!"), ord("I"), dtype="u1")
    argv = ["samtools", "view", "-b", "-o", str(directory / "alignments.bam"), "-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as samtools:
        assert samtools.stdin is not None
        samtools.stdin.write(b"@HD\tVN:1.6\tSO:coordinate\n")
        for name in chromosomes:
            samtools.stdin.write(f"@SQ\tSN:{name}\tLN:{length}\n".encode())
        for name in chromosomes:
            sequence = bases[generator.integers(0, len(bases), length)].tobytes()
            quality = qualities[generator.integers(0, len(qualities), (reads, read_length))]
            places = np.sort(generator.integers(0, length - read_length, reads))
            for read, place in enumerate(places):
                head = f"{name}r{read}\t0\t{name}\t{place + 1}\t60\t{read_length}M\t*\t0\t0\t"
                text = sequence[place : place + read_length]
                line = head.encode() + text + b"\t" + quality[read].tobytes() + b"\n"
                samtools.stdin.write(line)
    if samtools.returncode != 0:
        raise subprocess.CalledProcessError(samtools.returncode, argv)


def observations(directory: Path) -> None:
    """Write a million and a half observations of a thousand stations as Parquet."""
    duckdb.execute("SELECT setseed(0.5)")
    duckdb.execute("SET threads = 1")
    duckdb.execute(
        "COPY (SELECT i AS id, (i * 7919) % 1000 AS station,"
        " random() AS a, random() AS b, random() AS c, random() AS d FROM range(1500000) t(i))"
        f" TO '{directory}/observations.parquet' (FORMAT parquet, ROW_GROUP_SIZE 100000)"
    )


def field(directory: Path) -> None:
    """Write a field over time in 120 chunks as zarr."""
    generator = np.random.default_rng(SEED)
    shape = (TIMES, LATITUDES, LONGITUDES)
    array = zarr.create_array(
        str(directory / "field.zarr"), shape=shape, chunks=(8, 96, 144), dtype="f4"
    )
    array[:] = generator.standard_normal(shape).astype("f4")


DECOMPOSITION = """\
FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }
numberOfSubdomains 2;
method simple;
simpleCoeffs { n (2 1 1); delta 0.001; }
"""
CAVITY = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")


def cavity(directory: Path) -> None:
    """Copy OpenFOAM's tutorial, for two ranks that write every second of twenty steps."""
    case = directory / "cavity"
    shutil.copytree(CAVITY, case)
    for packed in case.rglob("*.gz"):
        subprocess.run(["gunzip", str(packed)], check=True)
    (case / "system" / "decomposeParDict").write_text(DECOMPOSITION, encoding="utf-8")
    control = case / "system" / "controlDict"
    lines = control.read_text(encoding="utf-8").splitlines()
    changed = {"endTime": "endTime 0.1;", "writeInterval": "writeInterval 2;"}
    lines = [changed.get(line.split(" ")[0], line) for line in lines]
    control.write_text("\n".join(lines) + "\n", encoding="utf-8")


def rocksdb(directory: Path) -> None:
    """Fill a database with 300,000 values of 400 bytes, not compressed."""
    argv = ["db_bench", f"--db={directory}/rocksdb", "--benchmarks=fillrandom", "--num=300000"]
    options = ["--value_size=400", "--compression_type=none", "--seed=1"]
    subprocess.run([*argv, *options], check=True, capture_output=True)


INPUTS: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (stage, climate, alignments, observations, field, cavity, rocksdb)
}

if __name__ == "__main__":
    INPUTS[sys.argv[1]](Path(sys.argv[2]))
