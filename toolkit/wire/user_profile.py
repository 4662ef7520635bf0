"""The user's own wire profile: a TOML file that has the last word on what a service calls things.

It overrides `/schemas`, which overrides what is built in. It names only what differs::

    [history.spread]
    path = "/api/v2/spreads"
    next = "next_before"
    numbers = "text"
    parameters = { end_time = "before" }
    key = ["ts", "seq"]
    fields.spread_pct = { wire = "spread", unit = "bps", reversed = true }

    [events.splash]
    retention_s = 604800
    paths.magnitude_pct = ["size.percent"]

    [spelling]
    exchange_case = "lower"
    symbol = "{base}-{quote}"
    markets.futures = "PERP"

    [history.price]
    ask = { key = "{symbol}|{exchange}:{market}", before = "{end_time}", size = "{limit}" }
    times = "ms"
    items = "result.rows"
    next = "header:x-before"
    fields.ts = { wire = "[0]", unit = "iso" }

    [listing]
    items = "pairs"
    leg = "{exchange}:{market}"

    [snapshots]
    activity = "/api/v2/activity"

    [snapshots.spread]
    items = "pairs.*"
    fields.symbol = { wire = "*1" }
    fields.spread_pct = { wire = "size.bps", unit = "bps" }

    [streams]
    market = "/api/v2/ws"
    events.splash = "/api/v2/splashes/ws"
    channels.price = "ticker"
    fields.item = "data"
    words.subscribe = "sub"

    [tools]
    price_history = "market.prices"

    [limits]
    body_bytes = 134217728
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from toolkit.errors import InputError
from toolkit.market import EventFamily, Family, SnapshotKind, unit_factor
from toolkit.tables import SERIES
from toolkit.wire.event_routes import UNITS, EventRoute
from toolkit.wire.history_route import OF_PAGE
from toolkit.wire.limits import Limits
from toolkit.wire.listing_shape import ListingShape, leg_template
from toolkit.wire.places import is_nameable
from toolkit.wire.profile import PLAIN_PATH, FieldRule, HistoryRoute, Profile
from toolkit.wire.snapshot_shape import SHAPED, SnapshotShape
from toolkit.wire.snapshots import NULLABLE
from toolkit.wire.spelling import AS_OURS, Spelling
from toolkit.wire.stream_names import StreamNames
from toolkit.wire.templates import check_templates, placeholders
from toolkit.wire.told import Ok

_Named = TypeVar("_Named", HistoryRoute, EventRoute)


class _FieldSection(msgspec.Struct, forbid_unknown_fields=True):
    wire: str | None = None
    unit: str | None = None
    reversed: bool | None = None


_Clock = Literal["s", "ms", "us", "ns", "iso"]


class _RouteSection(msgspec.Struct, forbid_unknown_fields=True):
    path: str | None = None
    ask: dict[str, str] = {}
    times: _Clock | None = None
    items: str | None = None
    next: str | None = None
    limit: int | None = None
    parameters: dict[str, str] = {}
    numbers: Literal["json", "text"] | None = None
    retention_s: Annotated[int, msgspec.Meta(ge=1)] | None = None
    delay_s: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _HistorySection(_RouteSection, forbid_unknown_fields=True):
    order: Literal["newest_first", "oldest_first"] | None = None
    key: list[str] | None = None
    settle_s: Annotated[int, msgspec.Meta(ge=0)] | None = None
    fields: dict[str, _FieldSection | float] = {}


class _EventsSection(_RouteSection, forbid_unknown_fields=True):
    more: str | None = None
    paths: dict[str, list[str]] = {}
    units: dict[str, str] = {}
    words: dict[str, str] = {}
    leg: str | None = None
    window_s: Annotated[int, msgspec.Meta(ge=2)] | None = None
    volatile: list[str] | None = None


class _SnapshotSection(msgspec.Struct, forbid_unknown_fields=True):
    path: str | None = None
    items: str | None = None
    numbers: Literal["json", "text"] | None = None
    leg: str | None = None
    fields: dict[str, _FieldSection | float] = {}


class _StreamsSection(msgspec.Struct, forbid_unknown_fields=True):
    market: str | None = None
    events: dict[EventFamily, str] = {}
    channels: dict[Family, str] = {}
    fields: dict[str, str] = {}
    words: dict[str, str] = {}


class _SpellingSection(msgspec.Struct, forbid_unknown_fields=True):
    exchange_case: Literal["upper", "lower"] | None = None
    symbol_case: Literal["upper", "lower"] | None = None
    symbol: str | None = None
    exchanges: dict[str, str] = {}
    markets: dict[str, str] = {}
    symbols: dict[str, str] = {}


class _OkSection(msgspec.Struct, forbid_unknown_fields=True):
    place: str
    value: str | int | bool | list[Any]


class _ProfileFile(msgspec.Struct, forbid_unknown_fields=True):
    spelling: _SpellingSection = msgspec.field(default_factory=_SpellingSection)
    listing: dict[str, str] = {}
    schemas_path: str | None = None
    symbols_path: str | None = None
    mcp_path: str | None = None
    error_message: str | None = None
    ok: _OkSection | None = None
    history: dict[Family, _HistorySection] = {}
    events: dict[EventFamily, _EventsSection] = {}
    snapshots: dict[str, str | _SnapshotSection] = {}
    streams: _StreamsSection = msgspec.field(default_factory=_StreamsSection)
    tools: dict[str, str] = {}
    limits: dict[str, int | float] = {}


@dataclass(frozen=True, slots=True)
class UserProfile:
    """A user's file: its limits, its SHA-256, and names by which `applied` overrides a profile."""

    path: Path
    limits: Limits
    hash: str
    _said: _ProfileFile

    @classmethod
    def read(cls, path: str | Path) -> UserProfile:
        """Read the file. A missing one, no TOML, or an unknown name is an `InputError`.

        >>> UserProfile.read("none.toml")
        Traceback (most recent call last):
        toolkit.errors.InputError: profile: 'none.toml' is not allowed; allowed: a TOML file ...
        """
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise _no_file(path, error) from None
        return cls.parsed(Path(path), text)

    @classmethod
    def parsed(cls, path: Path, text: str) -> UserProfile:
        """Read the text of a file, which errors name by ``path``. It raises what `read` does."""
        try:
            said = msgspec.convert(tomllib.loads(text), _ProfileFile)
        except tomllib.TOMLDecodeError as error:
            raise _no_file(path, error) from None
        except msgspec.ValidationError as error:
            allowed = "the names and values that docs/interface.md has"
            raise InputError("profile", str(path), allowed, advice=str(error)) from None
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(path, Limits.named(said.limits), digest, said)

    def applied(self, profile: Profile) -> Profile:
        """Apply the file to a profile.

        A column that the family does not have, or a parameter of no meaning, is an `InputError`.
        """
        said = self._said
        routes = (*said.history.values(), *said.events.values())
        snapshots = {
            kind: each if isinstance(each, _SnapshotSection) else _SnapshotSection(each)
            for kind, each in said.snapshots.items()
        }
        shaped = {kind for kind, each in snapshots.items() if each != _SnapshotSection(each.path)}
        if self._spelling(profile.spelling) != AS_OURS:
            shaped |= {SnapshotKind.SPREAD.value, SnapshotKind.FUNDING.value}
        snapshot_paths = {kind: each.path for kind, each in snapshots.items() if each.path}
        paths = [said.symbols_path, said.schemas_path, said.mcp_path, *snapshot_paths.values()]
        paths += [said.streams.market, *said.streams.events.values()]
        for path in (*paths, *(route.path for route in routes)):
            if path is not None and PLAIN_PATH.fullmatch(path) is None:
                allowed = "a path below the service's address, e.g. /api/v1/data/schemas"
                raise InputError(f"{self.path} path", path, allowed)
        histories = {
            family: self._history(route, said.history.get(family, _HistorySection()))
            for family, route in profile.histories.items()
        }
        events = {
            family: self._events(route, said.events.get(family, _EventsSection()))
            for family, route in profile.events.items()
        }
        self._known("snapshots", said.snapshots, profile.snapshots)
        self._known("tools", said.tools, profile.tools)
        return replace(
            profile,
            histories=histories,
            events=events,
            snapshots={**profile.snapshots, **snapshot_paths},
            shapes={
                kind: self._shape(kind, snapshots.get(kind, _SnapshotSection()))
                for kind in profile.snapshots
                if kind in shaped
            },
            streams=self._streams(profile.streams),
            symbols_path=said.symbols_path or profile.symbols_path,
            schemas_path=said.schemas_path or profile.schemas_path,
            mcp_path=said.mcp_path or profile.mcp_path,
            error_message=said.error_message or profile.error_message,
            ok=Ok(said.ok.place, said.ok.value) if said.ok else profile.ok,
            tools={**profile.tools, **said.tools},
            listing=self._listing(profile.listing),
            spelling=self._spelling(profile.spelling),
            users_hash=self.hash,
        )

    def _history(self, route: HistoryRoute, said: _HistorySection) -> HistoryRoute:
        table = SERIES[route.family]
        wanted = {c.name: c.unit for c in table.columns if c.name == "ts" or c in table.values}
        places = [place for place in said.ask.values() if _mixes(place)]
        if places:
            allowed = "a template of the page, or one of the trajectory, not of both"
            raise InputError(f"{self.path} history.{route.family}.ask", places[0], allowed)
        fields = self._fields(f"history.{route.family}", route.fields, said, wanted)
        key = route.key if said.key is None else tuple(said.key)
        named = self._named(f"history.{route.family}", route, said)
        oldest = said.order == "oldest_first" if said.order else route.oldest_first
        if oldest and not any("{start_time}" in each for each in named.ask.values()):
            allowed = "oldest_first with an ask that has {start_time}"
            raise InputError(f"{self.path} history.{route.family}.order", "oldest_first", allowed)
        settle_s = route.settle_s if said.settle_s is None else said.settle_s
        return replace(named, fields=fields, key=key, settle_s=settle_s, oldest_first=oldest)

    def _fields(
        self,
        where: str,
        built_in: tuple[FieldRule, ...],
        said: _HistorySection | _SnapshotSection,
        wanted: Mapping[str, str],
        absent: Collection[str] = (),
    ) -> tuple[FieldRule, ...]:
        """Apply a section's places, units and signs to the rules of its fields."""
        self._known(f"{where}.fields", said.fields, wanted)
        rules = {rule.column: rule for rule in built_in}
        for column, field in said.fields.items():
            rule = rules.get(column)
            if not isinstance(field, _FieldSection):
                rules[column] = self._constant(f"{where}.fields.{column}", column, field, wanted)
                continue
            nowhere = field.wire == "" and column in absent
            if field.wire is not None and not (nowhere or is_nameable(field.wire)):
                allowed = "a place without quotes, backslashes and control characters"
                raise InputError(f"{self.path} {where}.fields.{column}.wire", field.wire, allowed)
            unit = field.unit or (rule.unit if rule else None)
            if (
                unit is not None
            ):  # else schemas gave it none that can be used, and nor does the user
                wire = field.wire if field.wire is not None else rule.wire if rule else column
                turned = rule is not None and rule.reversed
                turned = turned if field.reversed is None else field.reversed
                rules[column] = FieldRule(column, wire, unit, wanted[column], reversed=turned)
                _ = rules[column].factor  # what cannot be converted is refused here
        as_text = any(rule.text for rule in built_in)
        as_text = said.numbers == "text" if said.numbers else as_text
        return tuple(replace(rule, text=as_text) for rule in rules.values())

    def _constant(
        self, where: str, column: str, value: float, wanted: Mapping[str, str]
    ) -> FieldRule:
        """Return the rule of a column that is one number in all rows: the hours of an interval."""
        if wanted[column] != "hours" or not 0 < value < math.inf:
            allowed = "hours above 0, of an interval alone: others have { wire = ..., unit = ... }"
            raise InputError(f"{self.path} {where}", value, allowed)
        return FieldRule(column, "", "hours", "hours", constant=float(value))

    def _shape(self, kind: str, said: _SnapshotSection) -> SnapshotShape:
        where = f"snapshots.{kind}"
        if kind not in SHAPED:
            allowed = "a path; its shape is said in [listing]"
            raise InputError(f"{self.path} {where}", "a section", allowed)
        shape = SnapshotShape.built_in(kind)
        return replace(
            shape,
            fields=self._fields(where, shape.fields, said, SHAPED[kind], NULLABLE),
            items=said.items or shape.items,
            leg=leg_template(f"{self.path} {where}.leg", said.leg) if said.leg else None,
            spelling=self._spelling(shape.spelling),
        )

    def _events(self, route: EventRoute, said: _EventsSection) -> EventRoute:
        section = f"events.{route.family}"
        self._known(f"{section}.paths", said.paths, route.paths)
        self._known(f"{section}.units", said.units, UNITS)
        for column, unit in said.units.items():
            _ = unit_factor(unit, UNITS[column])  # what cannot be converted is refused here
        paths = {column: tuple(places) for column, places in said.paths.items()}
        return replace(
            self._named(section, route, said),
            paths={**route.paths, **paths},
            units={**route.units, **said.units},
            words={**route.words, **said.words},
            text=said.numbers == "text" if said.numbers else route.text,
            leg=leg_template(f"{self.path} {section}.leg", said.leg) if said.leg else route.leg,
            more=said.more or route.more,
            longest_window_s=said.window_s or route.longest_window_s,
            volatile=route.volatile if said.volatile is None else tuple(said.volatile),
        )

    def _listing(self, shape: ListingShape) -> ListingShape:
        said = self._said.listing
        self._known("listing", said, [each.name for each in dataclasses.fields(shape)])
        return replace(shape, **said)

    def _spelling(self, spelling: Spelling) -> Spelling:
        said = {n: v for n, v in msgspec.structs.asdict(self._said.spelling).items() if v}
        return replace(spelling, **said) if said else spelling

    def _streams(self, names: StreamNames) -> StreamNames:
        said = self._said.streams
        self._known("streams.fields", said.fields, names.fields)
        self._known("streams.words", said.words, names.words)
        return StreamNames(
            market=said.market or names.market,
            events={**names.events, **said.events},
            channels={**names.channels, **said.channels},
            fields={**names.fields, **said.fields},
            words={**names.words, **said.words},
        )

    def _known(self, where: str, said: Iterable[str], known: Iterable[str]) -> None:
        names = list(known)
        for name in said:
            if name not in names:
                raise InputError(f"{self.path} {where}", name, ", ".join(names))

    def _named(self, section: str, route: _Named, said: _RouteSection) -> _Named:
        """Apply a section's address, names and page size to a route."""
        self._known(f"{section}.parameters", said.parameters, route.roles)
        if said.ask and said.parameters:
            allowed = "either ask or parameters"
            raise InputError(f"{self.path} {section}", "ask and parameters", allowed)
        check_templates(f"{self.path} {section}.ask", said.ask, route.placeholders)
        return replace(
            route,
            path=said.path or route.path,
            items=said.items or route.items,
            next=said.next or route.next,
            limit=said.limit or route.limit,
            retention_s=said.retention_s or route.retention_s,
            delay_s=route.delay_s if said.delay_s is None else said.delay_s,
            parameters={**route.parameters, **said.parameters},
            ask=said.ask or route.ask,
            clock=said.times or route.clock,
            spelling=self._spelling(route.spelling),
        )


def _no_file(path: str | Path, error: Exception) -> InputError:
    told = " ".join(str(error).split())
    return InputError("profile", str(path), "a TOML file of the user's", advice=told)


def _mixes(template: str) -> bool:
    """Check for a template of the trajectory and of the page, which would be asked anew each time.

    >>> _mixes("{symbol}/{limit}"), _mixes("{symbol}|{exchange}")
    (True, False)
    """
    names = set(placeholders(template))
    return bool(names & {*OF_PAGE}) and bool(names - {*OF_PAGE})
