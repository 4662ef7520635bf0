"""Draft of a user's wire profile: proved lines, and comments for a person to judge."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

import msgspec

from toolkit.market import UNIT_FACTORS
from toolkit.wire.profile.places import is_nameable
from toolkit.wire.profile.profile import Profile
from toolkit.wire.survey import FieldSurvey, ShownField

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# A draft of a wire profile for {}, made by `rail doctor`.
#
# What is in force was proved by the service's own answers. All else is a comment,
# and a guess is a guess. Take the # from a line that is right, put right one that
# is not, name the file in RAIL_PROFILE, and run `rail doctor` again.
"""
_NOTHING = "#\n# The service says everything as expected: there is nothing to put here.\n"
_MS = 10**12  # a time of this size is in ms: in s it would be in the year 33658


class ProfileDraft:
    """Sections of a profile by their dotted names: lines in force, and comments."""

    def __init__(self) -> None:
        self._proved: dict[str, dict[str, object]] = {}
        self._notes: dict[str, list[tuple[str, list[str]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._sections())

    def prove(
        self, section: str, lines: Mapping[str, object], known: Mapping[str, object] | None = None
    ) -> None:
        """Put lines in force, without those that equal ``known`` and fields with unusable names.

        >>> draft = ProfileDraft()
        >>> draft.prove("history.price", {"items": "points", "next": "n"}, {"next": "n"})
        >>> draft.prove("history.price", {"fields.ts": {"wire": "at", "unit": "ms"}})
        >>> print(draft.in_force())
        [history.price]
        items = "points"
        fields.ts = { wire = "at", unit = "ms" }
        """
        for name, value in lines.items():
            field = value if isinstance(value, Mapping) and name.startswith("fields.") else {}
            if value != (known or {}).get(name) and is_nameable(field.get("wire", name)):
                self._proved.setdefault(section, {})[name] = value

    def note(self, section: str, *lines: str, of: str = "") -> None:
        """Add comments to a section, dropped once the name ``of`` is proved."""
        self._notes.setdefault(section, []).append((of, [f"# {line}" for line in lines]))

    def lacking(
        self, section: str, name: str, said: str, guess: ShownField | None, unit: str = ""
    ) -> None:
        """Add the comment ``said`` on a missing name, and a line for it.

        >>> draft = ProfileDraft()
        >>> draft.lacking("tools", "symbols", "No tool x is listed.", None)
        >>> print(draft.text("https://rail.example").partition("[tools]")[2].strip())
        # No tool x is listed.
        # No guess: put its name in place of "?".
        # symbols = "?"
        """
        wire = guess.name if guess else "?"
        line = f"{name} = {toml({'wire': wire, 'unit': unit} if unit else wire)}"
        why = f"GUESS: {guess}." if guess else 'No guess: put its name in place of "?".'
        self.note(section, said, why, line, of=name)

    def fields(self, family: str, found: FieldSurvey) -> None:
        """Add comments on the fields that a history's records lack."""
        section = f"history.{family}"
        for column, wanted in found.missing.items():
            guess = found.guesses.get(column)
            late = guess and isinstance(guess.example, int) and guess.example >= _MS
            unit = "ms" if late and wanted == "s" else wanted
            unit = guess.unit if guess and guess.unit in UNIT_FACTORS else unit
            said = f"{column} ({wanted}) is not there by that name."
            self.lacking(section, f"fields.{column}", said, guess, unit)
        if found.text:
            self.note(section, "Its numbers are text.", 'numbers = "text"', of="numbers")

    def in_force(self) -> str:
        """Write the proved lines as TOML."""
        parts = ("\n".join([f"[{of}]", *_assigned(said)]) for of, said in self._proved.items())
        return "\n\n".join(sorted(parts))

    def applied(self, profile: Profile) -> Profile:
        """Lay the proved lines over a profile."""
        return profile.over(tomllib.loads(self.in_force()))

    def text(self, base_url: str) -> str:
        """Write the whole file, for a service at an address."""
        sections = self._sections().items()
        parts = ["\n".join(["", f"[{of}]", *lines, ""]) for of, lines in sections]
        return _HEAD.format(base_url) + ("".join(parts) or _NOTHING)

    def _sections(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for section in sorted({*self._proved, *self._notes}):
            proved = self._proved.get(section, {})
            lines = ["# Proved by the service's answers:", *_assigned(proved)] if proved else []
            notes = self._notes.get(section, [])
            lines += [line for of, said in notes if of not in proved for line in said]
            if lines:
                found[section] = [_printable(line, " ") for line in lines]
        return found


def _assigned(lines: Mapping[str, object]) -> list[str]:
    return [f"{name} = {toml(value)}" for name, value in lines.items()]


def toml(value: object) -> str:
    """Write a text, a truth value or a table of these as TOML.

    >>> toml({"unit": "bps", "reversed": True})
    '{ unit = "bps", reversed = true }'
    """
    if not isinstance(value, Mapping):
        return _printable(msgspec.json.encode(value).decode())
    names = {name: name if _BARE.fullmatch(name) else toml(name) for name in value}
    return f"{{ {', '.join(f'{names[name]} = {toml(each)}' for name, each in value.items())} }}"


def _printable(text: str, instead: str = "") -> str:
    return "".join(c if c.isprintable() else instead or f"\\U{ord(c):08x}" for c in text)
