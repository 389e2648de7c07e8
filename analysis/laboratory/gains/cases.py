"""One workload for each accelerator, on which its default can be beaten, or not."""

from __future__ import annotations

from dataclasses import dataclass

from gains.storage import ALLOW_QUEUE, Throttle


@dataclass(frozen=True)
class Case:
    """An accelerator and a job for it."""

    accelerator: str
    """Its name; of several that are tuned together the names, sorted."""
    what: str
    """What the job does, in a few words."""
    script: str
    """The job; ``{place}`` is where it reads and writes."""
    why: str
    """What the default does badly here, or why nothing is expected of another value."""
    throttle: Throttle | None = None
    """It works on slow storage."""
    prepare: str = ""
    """A shell command that is run once, by root, where the job reads and writes."""
    node_toml: str = ""
    """What the nodes allow; ``{device}`` is the slow storage's, ``{fast}`` a directory off it."""
    buffer: tuple[str, ...] = ()
    """Its jobs have the instrument tests/burst-buffer, with these options."""


STRIDED = """\
{launch} --file {place}/strided.$SLURM_JOB_ID --block-size 512 --blocks 32768 --collective
"""
CHECKPOINT = """\
fio --name=checkpoint --directory={{place}} --filename=checkpoint.$SLURM_JOB_ID --rw=write --bs=1M \
--size={size} --thinktime=250000 --thinktime_blocks=4 --end_fsync=1 --unlink=1 --output=/dev/null
"""
MPICH = "srun --mpi=pmi2 strided"
ALLOW_PAGE_CACHE = "".join(
    f'[[settings.allow]]\nkind = "sysctl"\nname = "vm.{name}"\nmin = 1\nmax = 8589934592\n'
    for name in (
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
    )
)

THREADS = 4
"""Workers and destagers that the instrument has of its own accord."""
SCALED = {
    "default = 10": f"default = {THREADS}",
    "[40, 50, 60]": "[16, 32, 64]",
    "default = 60": "default = 64",
}
"""The catalogue's smart-burst-buffer as the instrument is: MiB for GB, and its own defaults."""

INPUT = "head -c 24M /dev/urandom > input && chmod 644 input && sync"
FORGET = "dd if={place}/input iflag=nocache count=0 status=none\n"
"""What an earlier job has read must not be found in memory."""

CASES = (
    Case(
        "romio",
        "4 ranks write and read one file of 64 MiB in interleaved blocks of 512 bytes, "
        "collectively (MPICH)",
        STRIDED.format(launch=MPICH, place="{place}"),
        "All data passes through one aggregator, in rounds of 16 MiB; on one node with a local "
        "file system each rank can write whole stretches itself.",
    ),
    Case(
        "ompio",
        "the same, with Open MPI",
        STRIDED.format(
            launch="mpiexec.openmpi --oversubscribe --mca oob_tcp_if_include lo -n 4 "
            "env -u SLURM_NTASKS strided-openmpi --no-slurm",
            place="{place}",
        ),
        "Open MPI chooses the algorithm vulcan for every file; others exchange less data for "
        "blocks this small.",
    ),
    Case(
        "page-cache",
        "fio: a checkpoint in 10 bursts of 4 MiB with 0.25 s of computing between them, durable "
        "in the end, to storage of 20 MB/s",
        CHECKPOINT.format(size="40M"),
        "A burst of 4 MiB is far below 10 % of memory and no data gets 30 s old: nothing is "
        "written out while the job computes, and all of it at the end.",
        Throttle(write_bps=20_000_000),
        node_toml=ALLOW_PAGE_CACHE,
    ),
    Case(
        "block-queue",
        "fio: after 1 s of computing, reads 24 MiB in sequence, by 16 KiB, from storage of "
        "250 requests/s",
        FORGET
        + "sleep 1\n"
        + "fio --name=reader --filename={place}/input --readonly --rw=read --bs=16k --size=24M "
        "--fadvise_hint=0 --output=/dev/null\n",
        "128 KiB of read-ahead make 192 requests of it; a longer read-ahead makes fewer, larger "
        "ones.",
        Throttle(read_iops=250),
        prepare=INPUT,
        node_toml=ALLOW_QUEUE,
    ),
    Case(
        "rclone-vfs",
        "fio: reads 24 MiB three times, more than its memory keeps, from storage of 100 requests/s",
        FORGET + "for pass in 1 2 3; do\n"
        'fio --name=reader --filename="${{RCLONE_VFS_DIR:-{place}}}/input" --readonly '
        "--rw=read --bs=64k --size=24M --invalidate=1 --fadvise_hint=0 --output=/dev/null\n"
        "done\n",
        "Without a cache on the node each pass reads the slow storage anew.",
        Throttle(read_iops=100),
        prepare=INPUT,
        node_toml='[[commands]]\nname = "rclone-vfs"\n'
        'start = ["{bin}/rclone-vfs", "start", ":local:{place}"]\n'
        'stop = ["{bin}/rclone-vfs", "stop", ":local:{place}"]\ndirectory = "{fast}"\n',
    ),
    Case(
        "smart-burst-buffer",
        "fio: 16 processes write a checkpoint of 64 MiB, each its own file, durable in the end, "
        "through the instrument `tests/burst-buffer`, whose slow side of 60 MB/s has a neighbour",
        "#BB target=slow\n"
        'fio --name=checkpoint --directory="$BURST_BUFFER_DIR" --numjobs=16 --thread --rw=write '
        "--bs=256k --size=4M --end_fsync=1 --unlink=1 --output=/dev/null\n",
        "Four destagers wait 40 ms for each block: the slow side has time for eight.",
        buffer=("--rate=60", "--latency-ms=40", "--streams=8", "--neighbour=0.2"),
    ),
    Case(
        "page-cache+romio",
        "one job after the other: the collective file of romio's case, on a file system that is "
        "fast, and half the checkpoint of page-cache's, to storage of 20 MB/s",
        STRIDED.format(launch=MPICH, place="$HOME") + CHECKPOINT.format(size="20M"),
        "What the default of each does badly: one study finds values for both.",
        Throttle(write_bps=20_000_000),
        node_toml=ALLOW_PAGE_CACHE,
    ),
)
