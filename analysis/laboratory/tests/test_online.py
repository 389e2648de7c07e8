"""What the measurements of tuning inside a job say of what was run."""

from __future__ import annotations

from online.__main__ import Found, ratio
from online.bench import DEFAULT, POLICIES, PUBLISHED, Ran, Trial
from online.paths import Work

ONE, OTHER = Work("one", ("--rw=read",)), Work("other", ("--rw=write",))


def test_a_ratio_has_students_interval() -> None:
    assert ratio([0.0, 0.0, 0.0]) == "1.00 (1.00..1.00)"
    # Of ln 2, 0 and -ln 2: 0 +- 4.303 ln 2 / sqrt(3).
    assert ratio([0.693147, 0.0, -0.693147]) == "1.00 (0.18..5.60)"


def test_works_in_turn_are_compared_by_name_and_not_by_their_place() -> None:
    there, back = Trial("in turn", ((ONE,), (OTHER,))), Trial("in turn", ((OTHER,), (ONE,)))
    slow = [Ran(there, ((1e6,), (4e6,))), Ran(back, ((4e6,), (1e6,))), Ran(there, ((1e6,), (4e6,)))]
    fast = [Ran(there, ((2e6,), (4e6,))), Ran(back, ((4e6,), (2e6,))), Ran(there, ((2e6,), (4e6,)))]
    ran = {name: fast if name == PUBLISHED else slow for name in (DEFAULT, *POLICIES)}
    rows = [row for row in Found(there, (1, 2), ran).rows() if f" {PUBLISHED} |" in row]
    # 3 MB/s against 2.5 together; twice as quick in one work, and the same in the other.
    assert rows == [
        "| **in turn** | 2 | iopathtune-each | 1.20 (1.20..1.20) | 1.00 (1.00..1.00) | 0 |",
        "| in turn: one | 1 | iopathtune-each | 2.00 (2.00..2.00) | 1.00 (1.00..1.00) | |",
        "| in turn: other | 4 | iopathtune-each | 1.00 (1.00..1.00) | 1.00 (1.00..1.00) | |",
    ]


def test_clients_are_summed() -> None:
    together = Trial("together", ((ONE, OTHER),))
    assert Ran(together, ((1e6, 3e6),)).bandwidth == 4e6
    ran = {name: [Ran(together, ((1e6, 3e6),))] * 3 for name in (DEFAULT, *POLICIES)}
    *_, last = Found(together, (1, 2), ran).clients()
    assert last == "| settling from the best | 1 | 3 | 4 |"
