"""A draft of a user's wire profile: what a service shows under other names, as lines to judge.

Every assignment in it is a comment, so that nothing applies until a person has checked it. The
rest is valid TOML and accepted by `toolkit.wire.user_profile.UserProfile`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import msgspec

from toolkit.wire.listing_shape import BUILT_IN_LISTING, ListingShape
from toolkit.wire.survey import FieldSurvey, Guess, ShownField

_TO_FILL = "?"
_MS = 10**12  # a time of so many is one in ms: in s it would be in the year 33658


class Draft:
    """Sections of a profile, in the order they were begun."""

    def __init__(self) -> None:
        self._sections: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._sections.values()))

    def add(self, section: str, lines: Iterable[str]) -> None:
        """Add lines to a section. What is not printable in them, as a service may send it, goes."""
        clean = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
        self._sections.setdefault(section, []).extend(clean)

    def fields(self, family: str, found: FieldSurvey) -> None:
        """Add the differences between a history's records and the fields expected.

        >>> guesses = {"price": Guess(ShownField("px", example=1.5), "its name")}
        >>> found = FieldSurvey((), {"price": "quote"}, (), guesses)
        >>> draft = Draft()
        >>> draft.fields("price", found)
        >>> print(draft.text("https://rail.example").partition("[history.price]")[2].strip())
        # price (quote) is not there by that name.
        # GUESS, by its name: px (unit not stated, e.g. 1.5); quote is assumed.
        # fields.price = { wire = "px", unit = "quote" }
        """
        lines = []
        for column, unit in found.missing.items():
            guess = found.guesses.get(column)
            said = (guess.field.unit if guess else None) or unit
            if said == "s" and guess and isinstance(at := guess.field.example, int) and at >= _MS:
                said = "ms"
            wire = msgspec.json.encode(guess.field.name if guess else _TO_FILL).decode()
            lines += [
                f"# {column} ({unit}) is not there by that name.",
                _reason(guess, unit),
                f'# fields.{column} = {{ wire = {wire}, unit = "{said}" }}',
            ]
        if found.text:
            lines += ["# Its numbers are text.", '# numbers = "text"']
        lines += _left_over(found.unknown, found.guesses.values()) if found.missing else []
        self.add(f"history.{family}", lines)

    def items(self, family: str, place: str) -> None:
        """Add where a history's rows are."""
        wire = msgspec.json.encode(place).decode()
        self.add(
            f"history.{family}", ["# Its rows are in the page's only list.", f"# items = {wire}"]
        )

    def listing(self, shape: ListingShape) -> None:
        """Add a shape by which all of a listing is read.

        >>> draft = Draft()
        >>> draft.listing(ListingShape(items="pairs", leg="{exchange}:{market}"))
        >>> print(draft.text("https://rail.example").partition("[listing]")[2].strip())
        # GUESS, by which every symbol that is listed is read with its legs.
        # items = "pairs"
        # leg = "{exchange}:{market}"
        """
        said = dataclasses.asdict(shape).items() - dataclasses.asdict(BUILT_IN_LISTING).items()
        lines = [
            f"# {name} = {msgspec.json.encode(value).decode()}" for name, value in sorted(said)
        ]
        reason = "# GUESS, by which every symbol that is listed is read with its legs."
        self.add("listing", [reason, *lines])

    def tools(self, missing: Mapping[str, str], guesses: Mapping[str, Guess]) -> None:
        """Add guesses for the roles without a tool of the expected name.

        >>> draft = Draft()
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
            "# Nothing in it is in force: each line that would say something is a comment, and a",
            "# guess is a guess. Take the # from a line that is right, put right one that is not,",
            "# name the file in RAIL_PROFILE, and run `rail doctor` again.",
        ]
        for section, lines in sorted(self._sections.items()):
            if lines:
                parts += ["", f"[{section}]", *lines]
        if not len(self):
            parts += [
                "#",
                "# The service says everything as expected: there is nothing to put here.",
            ]
        return "\n".join(parts) + "\n"


def _reason(guess: Guess | None, unit: str) -> str:
    if guess is None:
        return f'# No guess: put its name in place of "{_TO_FILL}".'
    assumed = "" if guess.field.unit or not unit else f"; {unit} is assumed"
    return f"# GUESS, by {guess.because}: {guess.field}{assumed}."


def _left_over(unknown: Iterable[ShownField], guesses: Iterable[Guess]) -> list[str]:
    taken = [guess.field for guess in guesses]
    rest = [str(field) for field in unknown if field not in taken]
    return [f"# Shown and taken by nothing: {'; '.join(rest)}"] if rest else []
