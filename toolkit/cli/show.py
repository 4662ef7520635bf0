"""The terminal: stdout, stderr, and the warnings and files of several commands."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
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
    """Print findings of a service's answers on stderr, in words."""
    from toolkit.wire.finding_words import as_rows, explained  # noqa: PLC0415 - seldom needed

    for line in explained(as_rows(findings, profile)):
        errors.print(f"finding: {line}")


def write_new(option: str, path: Path, content: bytes | str, *, private: bool = True) -> None:
    """Write a new file, by default one that only its owner can read.

    Raises `InputError` about the option for an existing file, and one that cannot be written.
    """
    opener = partial(os.open, mode=0o600 if private else 0o666)
    try:
        with open(path, "xb", opener=opener) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(option, str(path), "a new file", advice=reason) from None


def warn_of_public(host: str, public: str) -> None:
    """Warn on stderr what others can see of a server that listens off this machine over http."""
    if not is_loopback(host.strip("[]")):
        errors.print(
            f"warning: {host} is not this machine alone: over plain http {public}; "
            "put an https proxy in front, or listen at 127.0.0.1"
        )
