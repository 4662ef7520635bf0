"""Exit codes of `rail`, in one table."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command. The numbers never change.

    >>> ExitCode.PARTLY, ExitCode.PARTLY.words
    (<ExitCode.PARTLY: 3>, 'some streams were loaded, or can be (rail doctor), others were refused')
    """

    DONE = 0
    REFUSED = 1
    USAGE = 2
    PARTLY = 3
    FAULT = 70
    STOPPED = 130
    ENDED = 143

    @property
    def words(self) -> str:
        """What it means, in one line."""
        return _WORDS[self]


_WORDS = {
    ExitCode.DONE: "did what was asked",
    ExitCode.REFUSED: "refused or could not; one line on stderr says why",
    ExitCode.USAGE: "no such command or option, or one of the wrong form",
    ExitCode.PARTLY: "some streams were loaded, or can be (rail doctor), others were refused",
    ExitCode.FAULT: "a fault of the toolkit; RAIL_DEBUG=1 shows where",
    ExitCode.STOPPED: "stopped by Ctrl-C; what was committed is kept",
    ExitCode.ENDED: "ended by SIGTERM",
}


def exit_codes() -> str:
    """Return the table as text, one line for each code.

    >>> print(exit_codes().splitlines()[1])
      0    did what was asked
    """
    lines = [f"  {code.value:<3}  {code.words}" for code in ExitCode]
    return "\n".join(["Exit codes:", *lines])
