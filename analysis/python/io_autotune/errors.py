"""What can go wrong. Each message says what was asked, what is wrong, and what to do."""


class Error(Exception):
    """Any error of this package."""


class ProgramNotFound(Error, FileNotFoundError):
    """The program `io-autotune` is not installed, or not in PATH."""


class OtherVersion(Error):
    """The installed `io-autotune` is of another version than this package."""


class SpaceError(Error, ValueError):
    """A parameter, its default, a condition or a constraint is wrong."""


class StorageError(Error):
    """The storage cannot be used, or its study is about something else."""


class EngineEnded(Error, ConnectionError):
    """The process ended in the middle."""


class ToldTwice(Error, ValueError):
    """A run was told of before."""


class UnknownRun(Error, ValueError):
    """Nobody asked for this run."""


class ValueRefused(Error, ValueError):
    """A value that no run can have."""


class MustWait(Error):
    """The comparison begins when open runs have been told of."""


class Finished(Error):
    """There is nothing left to run."""


class Failed(Exception):
    """Raise it in a function to say that its run failed."""


class Cut(Exception):
    """Raise it in a function that was cut short: its value would have been at least as bad."""

    def __init__(self, bound: float) -> None:
        """Cut short at this value."""
        super().__init__(bound)
        self.bound = bound
