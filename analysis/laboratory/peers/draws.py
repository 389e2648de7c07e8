"""The noise of a replay: `analysis/simulation/src/dataset/draw.rs`, bit for bit.

The formulas are there. `analysis/simulation/tests/fixtures` holds both to the same numbers.
"""

import math

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


class Draw:
    """The numbers behind one run, a function of seed, place of the parametrization, repetition."""

    def __init__(self, seed: int, place: int, nth: int) -> None:
        """`nth` is the number of runs of the parametrization before this one."""
        state = _mix((seed + _GOLDEN) & _MASK)
        state = _mix((state + place + _GOLDEN) & _MASK)
        self._state = _mix((state + nth + _GOLDEN) & _MASK)

    def _word(self, k: int) -> int:
        return _mix((self._state + k * _GOLDEN) & _MASK)

    def row(self, rows: int) -> int:
        """One of so many rows, from 0."""
        return (self._word(1) * rows) >> 64

    def factor(self, relative_sd: float) -> float:
        """A log-normal factor of mean 1 and the given relative standard deviation."""
        scale = float(1 << 53)
        u = (self._word(2) >> 11) / scale + 1.0 / scale
        v = (self._word(3) >> 11) / scale
        normal = math.sqrt(-2.0 * math.log(u)) * math.cos(math.tau * v)
        variance = math.log1p(relative_sd * relative_sd)
        return math.exp(math.sqrt(variance) * normal - variance / 2.0)
