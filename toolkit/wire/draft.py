"""A draft of a user's wire profile: what was proved of a service, and what a person has to judge.

What was proved is a line in force. Every other assignment is a comment that says what is missing.
The whole is TOML that `toolkit.wire.user_profile.UserProfile` reads.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping

import msgspec

from toolkit.market import UNIT_FACTORS
from toolkit.wire.listing_shape import BUILT_IN_LISTING, ListingShape
from toolkit.wire.places import is_nameable
from toolkit.wire.profile import Profile
from toolkit.wire.spelling import AS_OURS, Spelling
from toolkit.wire.survey import FieldSurvey, ShownField

_TO_FILL = "?"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# A draft of a wire profile for {}, made by `rail doctor`.
#
# What is in force was proved by the service's own answers. All else is a comment,
# and a guess is a guess. Take the # from a line that is right, put right one that
# is not, name the file in RAIL_PROFILE, and run `rail doctor` again.
"""
_NOTHING = "#\n# The service says everything as expected: there is nothing to put here.\n"
_MS = 10**12  # a time of so many is one in ms: in s it would be in the year 33658


class ProfileDraft:
    """Sections of a profile: lines in force, and comments on what could not be proved."""

    def __init__(self) -> None:
        self._proved: dict[str, dict[str, object]] = {}
        self._notes: dict[str, list[tuple[str, list[str]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._sections())

    def prove(self, section: str, name: str, value: object, known: object = None) -> None:
        """Add a line in force. ``known`` is what is said without it: the same is no line.

        >>> draft = ProfileDraft()
        >>> draft.prove("history.price", "items", "points", "items")
        >>> draft.field("history.price", "ts", "at", "ms")
        >>> print(draft.in_force())
        [history.price]
        items = "points"
        fields.ts = { wire = "at", unit = "ms" }
        """
        if value != known:
            self._proved.setdefault(section, {})[name] = value

    def field(
        self, section: str, column: str, wire: str, unit: str, turned: bool | None = None
    ) -> None:
        """Add the place and unit of a column, and its sign where it is turned, as in force."""
        if is_nameable(wire):
            rule = {"wire": wire, "unit": unit} | ({"reversed": True} if turned else {})
            self.prove(section, f"fields.{column}", rule)

    def listing(self, shape: ListingShape, spelling: Spelling) -> None:
        """Add a shape and a spelling by which all of a listing is read, as in force.

        >>> draft = ProfileDraft()
        >>> shape = dataclasses.replace(BUILT_IN_LISTING, items="pairs")
        >>> draft.listing(shape, Spelling({"futures": "PERP"}))
        >>> print(draft.in_force())
        [listing]
        items = "pairs"
        <BLANKLINE>
        [spelling]
        markets = { futures = "PERP" }
        """
        for section, said, known in (
            ("listing", shape, BUILT_IN_LISTING),
            ("spelling", spelling, AS_OURS),
        ):
            for each in dataclasses.fields(said):
                self.prove(section, each.name, getattr(said, each.name), getattr(known, each.name))

    def note(self, section: str, *lines: str, of: str = "") -> None:
        """Add comments to a section. They go once the name that they are ``of`` is proved."""
        self._notes.setdefault(section, []).append((of, [f"# {line}" for line in lines]))

    def lacking(
        self, section: str, name: str, said: str, guess: ShownField | None, unit: str = ""
    ) -> None:
        """Add a comment on a name that is not there: what is ``said`` of it, and its line.

        >>> draft = ProfileDraft()
        >>> draft.lacking("tools", "symbols", "No tool x is listed.", None)
        >>> print(draft.text("https://rail.example").partition("[tools]")[2].strip())
        # No tool x is listed.
        # No guess: put its name in place of "?".
        # symbols = "?"
        """
        wire = guess.name if guess else _TO_FILL
        line = f"{name} = {_toml({'wire': wire, 'unit': unit} if unit else wire)}"
        why = f"GUESS: {guess}." if guess else f'No guess: put its name in place of "{_TO_FILL}".'
        self.note(section, said, why, line, of=name)

    def fields(self, family: str, found: FieldSurvey) -> None:
        """Add the differences between a history's records and the fields expected.

        >>> found = FieldSurvey((), {"price": "quote"}, (), {"price": ShownField("px")})
        >>> draft = ProfileDraft()
        >>> draft.fields("price", found)
        >>> print(draft.text("https://rail.example").partition("[history.price]")[2].strip())
        # price (quote) is not there by that name.
        # GUESS: px.
        # fields.price = { wire = "px", unit = "quote" }
        """
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
        """Write the lines that were proved, as TOML."""
        parts = [
            "\n".join([f"[{section}]", *_assigned(lines)])
            for section, lines in sorted(self._proved.items())
        ]
        return "\n\n".join(parts)

    def applied(self, profile: Profile) -> Profile:
        """Lay the lines that were proved over a profile."""
        return profile.over(tomllib.loads(self.in_force()))

    def text(self, base_url: str) -> str:
        """Write the whole file, for a service at an address."""
        sections = self._sections()
        parts = ["\n".join(["", f"[{of}]", *lines, ""]) for of, lines in sections.items()]
        return _HEAD.format(base_url) + ("".join(parts) or _NOTHING)

    def _sections(self) -> dict[str, list[str]]:
        """Return all sections with their lines, those in force first."""
        found: dict[str, list[str]] = {}
        for section in sorted({*self._proved, *self._notes}):
            proved = self._proved.get(section, {})
            lines = ["# Proved by the service's answers:", *_assigned(proved)] if proved else []
            notes = self._notes.get(section, [])
            lines += [line for of, said in notes if of not in proved for line in said]
            if lines:
                found[section] = [*map(_printable, lines)]
        return found


def _assigned(lines: Mapping[str, object]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in lines.items()]


def _toml(value: object) -> str:
    """Write a text, a truth value or a table of these as TOML, which JSON text is too."""
    if not isinstance(value, Mapping):
        text = msgspec.json.encode(value).decode()
        return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
    pairs = [
        f"{name if _BARE.fullmatch(name) else _toml(name)} = {_toml(each)}"
        for name, each in value.items()
    ]
    return f"{{ {', '.join(pairs)} }}"


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else " " for c in line)
