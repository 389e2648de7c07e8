"""What a study by Ax comes to."""

from dataclasses import dataclass

LOOKS = (5, 10, 25, 50)
"""The runs after which the recommendation is looked at, as `transfer --only-patterns` has them."""
FIT_STEPS = 300
"""The most steps of a fit. Ax has no bound; near the optimum it makes thousands."""


@dataclass(frozen=True)
class Life:
    """A study's figures at each look, and the processor's seconds."""

    recommended: list[float]
    """What is recommended, over the true best."""
    average: list[float]
    """The average run, over the default."""
    harm: list[float]
    """The time above the default's, in runs of the default."""
    computing: float
