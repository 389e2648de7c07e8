"""Tunes functions outside Slurm, by the installed `io-autotune`: few runs, and an honest end.

>>> import io_autotune as it
>>> study = it.Study({"x": it.Int(-10, 10, default=9)}, runs=20)
>>> study.optimize(lambda params: (params["x"] - 3) ** 2)
>>> study.best_params
{'x': 3}
"""

from io_autotune.errors import (
    Cut,
    EngineEnded,
    Error,
    Failed,
    Finished,
    MustWait,
    OtherVersion,
    ProgramNotFound,
    SpaceError,
    StorageError,
    ToldTwice,
    UnknownRun,
    ValueRefused,
)
from io_autotune.space import Categorical, Float, Int, Ordered, Parameter, Space
from io_autotune.study import Best, Gain, Run, Study

__all__ = [
    "Best", "Categorical", "Cut", "EngineEnded", "Error", "Failed", "Finished", "Float", "Gain",
    "Int", "MustWait", "Ordered", "OtherVersion", "Parameter", "ProgramNotFound", "Run", "Space",
    "SpaceError", "StorageError", "Study", "ToldTwice", "UnknownRun", "ValueRefused",
]  # fmt: skip
