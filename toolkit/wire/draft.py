"""A draft of a user's wire profile: what was proved of a service, and what a person has to judge.

What was proved is a line in force. Every other assignment is a comment that says what is missing.
The whole is TOML that `toolkit.wire.user_profile.UserProfile` reads.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields

import msgspec

from toolkit.market import UNIT_FACTORS
from toolkit.wire.listing_shape import BUILT_IN_LISTING, ListingShape
from toolkit.wire.places import is_nameable
from toolkit.wire.profile import Profile
from toolkit.wire.spelling import AS_OURS, Spelling
from toolkit.wire.survey import FieldSurvey, Guess, ShownField

_TO_FILL = "?"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
PROVED = "# Proved by the service's answers:"
_MS = 10**12  # a time of so many is one in ms: in s it would be in the year 33658


class ProfileDraft:
    """Sections of a profile, in the order they were begun."""

    def __init__(self) -> None:
        self._sections: dict[str, list[str]] = {}
        self._surveys: dict[str, FieldSurvey] = {}
        self._proved: dict[str, dict[str, object]] = {}

    def __len__(self) -> int:
        return len(self._lines())

    def prove(self, section: str, name: str, value: object, known: object) -> None:
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
        if not is_nameable(wire):
            return
        rule = {"wire": wire, "unit": unit} | ({"reversed": True} if turned else {})
        self.prove(section, f"fields.{column}", rule, None)

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

    def _lines(self) -> list[str]:
        """Return all sections with their lines, those in force first."""
        found = []
        names = {*self._proved, *self._sections, *(f"history.{family}" for family in self._surveys)}
        for section in sorted(names):
            proved = self._proved.get(section, {})
            lines = [PROVED, *_assigned(proved)] if proved else []
            lines += self._sections.get(section, [])
            if survey := self._surveys.get(section.removeprefix("history.")):
                lines += _survey_lines(survey, [n.removeprefix("fields.") for n in proved])
            if lines:
                found += ["", f"[{section}]", *map(_printable, lines)]
        return found

    def add(self, section: str, lines: Iterable[str]) -> None:
        """Add lines to a section. What is not printable in them, as a service may send it, goes."""
        self._sections.setdefault(section, []).extend(lines)

    def fields(self, family: str, found: FieldSurvey) -> None:
        """Add the differences between a history's records and the fields expected.

        >>> guesses = {"price": Guess(ShownField("px", example=1.5), "its name")}
        >>> found = FieldSurvey((), {"price": "quote"}, (), guesses)
        >>> draft = ProfileDraft()
        >>> draft.fields("price", found)
        >>> print(draft.text("https://rail.example").partition("[history.price]")[2].strip())
        # price (quote) is not there by that name.
        # GUESS, by its name: px (unit not stated, e.g. 1.5); quote is assumed.
        # fields.price = { wire = "px", unit = "quote" }
        """
        self._surveys[family] = found

    def listing(self, shape: ListingShape, spelling: Spelling) -> None:
        """Add a shape and a spelling by which all of a listing is read, as in force.

        >>> from dataclasses import replace
        >>> draft = ProfileDraft()
        >>> shape = replace(BUILT_IN_LISTING, items="pairs", leg="{exchange}:{market}")
        >>> draft.listing(shape, Spelling({"futures": "PERP"}))
        >>> print(draft.in_force())
        [listing]
        items = "pairs"
        leg = "{exchange}:{market}"
        <BLANKLINE>
        [spelling]
        markets = { futures = "PERP" }
        """
        for section, said, known in (
            ("listing", shape, BUILT_IN_LISTING),
            ("spelling", spelling, AS_OURS),
        ):
            for each in fields(said):
                self.prove(section, each.name, getattr(said, each.name), getattr(known, each.name))

    def tools(self, missing: Mapping[str, str], guesses: Mapping[str, Guess]) -> None:
        """Add guesses for the roles without a tool of the expected name.

        >>> draft = ProfileDraft()
        >>> draft.tools({"symbols": "data.search_symbols"}, {})
        >>> print(draft.text("https://rail.example").partition("[tools]")[2].strip())
        # symbols: no tool data.search_symbols is listed.
        # No guess: put its name in place of "?".
        # symbols = "?"
        """
        for role, name in missing.items():
            guess = guesses.get(role)
            wire = msgspec.json.encode(guess.field.name if guess else _TO_FILL).decode()
            lines = [
                f"# {role}: no tool {name} is listed.",
                _reason(guess, ""),
                f"# {role} = {wire}",
            ]
            self.add("tools", lines)

    def text(self, base_url: str) -> str:
        """Write the whole file, for a service at an address."""
        parts = [
            f"# A draft of a wire profile for {base_url}, made by `rail doctor`.",
            "#",
            "# What is in force was proved by the service's own answers. All else is a comment,",
            "# and a guess is a guess. Take the # from a line that is right, put right one that",
            "# is not, name the file in RAIL_PROFILE, and run `rail doctor` again.",
            *self._lines(),
        ]
        if not len(self):
            parts += [
                "#",
                "# The service says everything as expected: there is nothing to put here.",
            ]
        return "\n".join(parts) + "\n"


def _survey_lines(found: FieldSurvey, proved: Collection[str]) -> list[str]:
    """Write what is missing of a record but for the columns that were proved."""
    lines: list[str] = []
    missing = {column: unit for column, unit in found.missing.items() if column not in proved}
    for column, unit in missing.items():
        guess = found.guesses.get(column)
        said = guess.field.unit if guess and guess.field.unit in UNIT_FACTORS else unit
        if said == "s" and guess and isinstance(at := guess.field.example, int) and at >= _MS:
            said = "ms"
        wire = msgspec.json.encode(guess.field.name if guess else _TO_FILL).decode()
        lines += [
            f"# {column} ({unit}) is not there by that name.",
            _reason(guess, unit),
            f'# fields.{column} = {{ wire = {wire}, unit = "{said}" }}',
        ]
    if found.text and "numbers" not in proved:
        lines += ["# Its numbers are text.", '# numbers = "text"']
    return lines + (_left_over(found.unknown, found.guesses.values()) if missing else [])


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


def _reason(guess: Guess | None, unit: str) -> str:
    if guess is None:
        return f'# No guess: put its name in place of "{_TO_FILL}".'
    assumed = "" if guess.field.unit or not unit else f"; {unit} is assumed"
    return f"# GUESS, by {guess.because}: {guess.field}{assumed}."


def _left_over(unknown: Iterable[ShownField], guesses: Iterable[Guess]) -> list[str]:
    taken = [guess.field for guess in guesses]
    rest = [str(field) for field in unknown if field not in taken]
    return [f"# Shown and taken by nothing: {'; '.join(rest)}"] if rest else []
