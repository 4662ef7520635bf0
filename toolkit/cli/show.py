"""Numbers, times and tables on the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import InputError
from toolkit.show.terminal import Terminal
from toolkit.wire.address import is_loopback

if TYPE_CHECKING:
    from toolkit.wire.findings import Finding
    from toolkit.wire.profile.profile import Profile

console = Terminal()
errors = Terminal(stderr=True)


def print_findings(findings: Iterable[tuple[Finding, int]], profile: Profile) -> None:
    """Print on stderr, in words, the findings of answers read by a profile."""
    from toolkit.wire.finding_words import as_rows, explained  # noqa: PLC0415 - seldom needed

    for line in explained(as_rows(findings, profile)):
        errors.print(f"finding: {line}")


def write_new(option: str, path: Path, text: str) -> None:
    """Write a new file that its owner alone can read. Raise `InputError` of the option if not."""
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        told = error.strerror or str(error)
        raise InputError(option, str(path), "a file to write", advice=told) from None


def warn_of_public(host: str, public: str) -> None:
    """Warn on stderr of what is public where a server listens off this machine over http."""
    if not is_loopback(host.strip("[]")):
        errors.print(
            f"warning: {host} is not this machine alone: over plain http {public}; "
            "put an https proxy in front, or listen at 127.0.0.1"
        )
