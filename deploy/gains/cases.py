"""One workload for each accelerator, on which its default can be beaten, or not."""

from __future__ import annotations

from dataclasses import dataclass

from gains.storage import Throttle


@dataclass(frozen=True)
class Case:
    """An accelerator and a job for it."""

    accelerator: str
    what: str
    """What the job does, in a few words."""
    script: str
    """The job; ``{place}`` is where it reads and writes."""
    throttle: Throttle | None = None
    """It works on slow storage."""
    prepare: str = ""
    """A shell command that is run once, by root, where the job reads and writes."""
    node_toml: str = ""
    """What the nodes allow; ``{device}`` is the slow storage's."""


STRIDED = """\
{launch} --file {{place}}/strided.$SLURM_JOB_ID --block-size 512 --blocks 32768 --collective
"""

CASES = (
    Case(
        "romio",
        "4 ranks write and read one file in interleaved blocks of 512 bytes, collectively (MPICH)",
        STRIDED.format(launch="srun --mpi=pmi2 strided"),
    ),
    Case(
        "ompio",
        "the same, with Open MPI",
        STRIDED.format(
            launch="mpiexec.openmpi --oversubscribe --mca oob_tcp_if_include lo -n 4 "
            "env -u SLURM_NTASKS strided-openmpi --no-slurm"
        ),
    ),
    Case(
        "page-cache",
        "fio: a checkpoint in 10 bursts of 4 MiB with 0.25 s of computing between them, durable "
        "in the end, to storage of 20 MB/s",
        "fio --name=checkpoint --directory={place} --filename=checkpoint.$SLURM_JOB_ID "
        "--rw=write --bs=1M --size=40M --thinktime=250000 --thinktime_blocks=4 --end_fsync=1 "
        "--unlink=1 --output=/dev/null\n",
        Throttle(write_bps=20_000_000),
        node_toml="".join(
            f'[[settings.allow]]\nkind = "sysctl"\nname = "vm.{name}"\nmin = 1\nmax = 8589934592\n'
            for name in (
                "dirty_bytes",
                "dirty_background_bytes",
                "dirty_expire_centisecs",
                "dirty_writeback_centisecs",
            )
        ),
    ),
    Case(
        "block-queue",
        "fio: reads every other 16 KiB of 32 MiB, from storage of 100 requests/s",
        "fio --name=reader --filename={place}/input --readonly --rw=read:16k --bs=16k --size=32M "
        "--invalidate=1 --output=/dev/null\n",
        Throttle(read_iops=100),
        prepare="head -c 32M /dev/urandom > input && chmod 644 input && sync",
        node_toml='[settings]\nblock_devices = ["{device}"]\n'
        + "".join(
            f'[[settings.allow]]\nkind = "block"\nname = "{name}"\nmin = 0\nmax = 8192\n'
            for name in ("read_ahead_kb", "nr_requests", "max_sectors_kb")
        )
        + '[[settings.allow]]\nkind = "block"\nname = "scheduler"\n'
        'values = ["none", "mq-deadline", "kyber", "bfq"]\n',
    ),
    Case(
        "rclone-vfs",
        "fio: reads 64 MiB twice, in random pieces of 64 KiB, from a local directory",
        'fio --name=reader --filename="${{RCLONE_VFS_DIR:-{place}}}/input" --readonly '
        "--rw=randread --bs=64k --size=64M --loops=2 --invalidate=1 --output=/dev/null\n",
        prepare="head -c 64M /dev/urandom > input && chmod 644 input && mkdir -m 1777 mounts",
        node_toml='[[commands]]\nname = "rclone-vfs"\n'
        'start = ["{bin}/rclone-vfs", "start", ":local:{place}", "{place}/mounts"]\n'
        'stop = ["{bin}/rclone-vfs", "stop", ":local:{place}", "{place}/mounts"]\n',
    ),
)
