"""GCC's options for a small numerical program, `compiled.c`, by the program's processor time."""

from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_SOURCE = Path(__file__).with_name("compiled.c")
_ROUNDS = "20"
_SWITCHES = {
    "march": {"generic": "-march=x86-64", "native": "-march=native"},
    "vectorize": {"as the level": "", "off": "-fno-tree-vectorize"},
    "unroll_loops": {"as the level": "", "on": "-funroll-loops"},
    "fast_math": {"off": "", "on": "-ffast-math"},
    "inline": {"as the level": "", "off": "-fno-inline"},
    "frame_pointer": {"as the level": "", "kept": "-fno-omit-frame-pointer"},
}


def _compiled(folder: Path, chosen: Chosen) -> float:
    words = [of[chosen[name]] for name, of in _SWITCHES.items()]
    options = [f"-{chosen['level']}", *(word for word in words if word)]
    program = folder / f"compiled{''.join(options)}"
    if not program.exists():
        spent(["gcc", *options, str(_SOURCE), "-o", str(program), "-lm"], folder)
    return spent([str(program), _ROUNDS], folder).processor


COMPILED = Program(
    "compiled",
    "a small numerical program in C, compiled by GCC 12 with these options; its processor time",
    {
        "level": ["O0", "O1", "O2", "O3", "Os"],
        **{name: list(of) for name, of in _SWITCHES.items()},
    },
    frozenset({"level", *_SWITCHES}),
    {
        "level": "O2",
        "march": "generic",
        "vectorize": "as the level",
        "unroll_loops": "as the level",
        "fast_math": "off",
        "inline": "as the level",
        "frame_pointer": "as the level",
    },
    _compiled,
    needs=("gcc",),
)
