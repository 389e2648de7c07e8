"""A command's progress."""

import sys
from collections.abc import Callable


def progress(command: str) -> Callable[[int, int], None]:
    """Prints the number of finished studies on stderr: each on a terminal, else every 50th."""

    def say(done: int, of: int) -> None:
        if sys.stderr.isatty() or done % 50 == 0 or done == of:
            end = "\r" if sys.stderr.isatty() and done < of else "\n"
            print(f"{command}: {done} of {of} studies", end=end, file=sys.stderr, flush=True)

    return say
