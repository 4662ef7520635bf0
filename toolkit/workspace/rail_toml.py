"""``rail.toml``: the watchlist of `rail follow`, the fee table in force, how long pages are kept.

Each field that names streams is a rule, ``symbols``, ``exchanges`` and ``families`` together are
one, and the watchlist is the union. `EXAMPLE` shows every field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from toolkit.errors import InputError
from toolkit.fields import among, check_names, optional, read_toml, switch, texts, typed
from toolkit.market import Family, SnapshotKind, Trajectory, parse_length
from toolkit.statistics.fees import FeeModel
from toolkit.store.writing.pages import KEPT_DAYS
from toolkit.workspace.listed import WATCHLIST, read_keys

FILE_NAME = "rail.toml"
"""The name of the file, beside the store or in the working directory."""

EXAMPLE = """\
# fees = "fees.toml"    # beside this file: the fee table of net figures, see `rail fees --example`
# pages_days = 30       # how long pages are kept for `rail store remap`, 0: not at all

# The watchlist of `rail follow`. Every field may be left out.
[follow]

# Which streams. Each of these is a rule, and what any of them names is followed.
streams = ["BTC_USDT:*", "events/*"]    # keys, and patterns of keys
symbols = ["ETH_USDT", "LTC_USDT"]      # one rule with the next two: of these symbols ...
exchanges = ["AURORA", "BOREAS"]        # ... on these exchanges ...
families = ["spread", "funding"]        # ... these families: price, spread, funding
open_now = true                         # every pair whose spread is open now
top_open = 50                           # the widest open spreads
widest_funding = true                   # of each symbol the two legs furthest apart
events_above_pct = 1.0                  # every pair with a spread event of this size (percent)
events_within = "7d"                    # ... in so long before now
snapshots = ["spread", "funding"]       # market-wide snapshots: also activity, symbols

# For how long, and how often.
back = "30d"      # what the store lacks is asked for from so long ago on
keep = "1d"       # a pair that no rule names any more is followed for so long
poll_s = 60       # seconds between two snapshots
sweep_s = 60      # seconds between two looks into the archive, more where the quota is small
rules_s = 300     # seconds after which the rules are read anew
"""
"""A watchlist with every field, as ``rail follow --example`` prints it."""

_LONGEST_DAYS = 36_500
_PRINTS_ONE = "`rail follow --example` prints one"
_SECTIONS = ("fees", "pages_days", "follow", "alert")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchlist:
    """Rules that name streams, and the intervals of a follow. `EXAMPLE` explains each field.

    ``name`` is its origin, for messages.

    >>> Watchlist(streams=["BTC_USDT:*"]).back_s
    2592000
    >>> Watchlist(top_open=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: watchlist top_open: 0 is not allowed; allowed: a whole number ...
    """

    streams: Iterable[str] = ()
    symbols: Iterable[str] = ()
    exchanges: Iterable[str] = ()
    families: Iterable[str] = ()
    open_now: bool = False
    top_open: int | None = None
    widest_funding: bool = False
    events_above_pct: float | None = None
    events_within: str = "7d"
    snapshots: Iterable[str] = ("spread", "funding")
    back: str = "30d"
    keep: str = "1d"
    poll_s: float = 60.0
    sweep_s: float = 60.0
    rules_s: float = 300.0
    name: str = "watchlist"

    def __post_init__(self) -> None:
        for each, check in _CHECKS.items():
            object.__setattr__(self, each, check(f"{self.name} {each}", getattr(self, each)))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file such as `EXAMPLE`. Raises `InputError` for anything else.

        >>> Watchlist.read("none.toml")
        Traceback (most recent call last):
        toolkit.errors.InputError: watchlist: 'none.toml' is not allowed; allowed: a TOML file ...
        """
        said = read_settings(path, "watchlist").get("follow")
        if not isinstance(said, dict):
            raise InputError(f"{path} follow", said, "a table: [follow]", advice=_PRINTS_ONE)
        check_names(f"{path} follow", said, _CHECKS)
        found = cls(**said, name=f"{path} follow")
        if not found.names_streams:
            raise InputError(f"{path} follow", None, "one rule or more", advice=_PRINTS_ONE)
        return found

    @classmethod
    def of(cls, streams: Iterable[str]) -> Self:
        """Return the watchlist of some keys and patterns only."""
        return cls(streams=streams, snapshots=())

    @classmethod
    def default(cls) -> Self:
        """Return the watchlist of a follow without rules."""
        return cls(streams=[WATCHLIST])

    @property
    def names_streams(self) -> bool:
        """Whether any rule names streams."""
        named = (self.streams, self.symbols, self.exchanges, self.families, self.snapshots)
        found = (self.open_now, self.top_open, self.widest_funding, self.events_above_pct)
        return any(named) or any(each is not None and each is not False for each in found)

    def of_market(self, trajectory: Trajectory) -> bool:
        """Whether ``symbols``, ``exchanges`` and ``families``, if any is given, name a stream."""
        symbols, exchanges, families = self.symbols, self.exchanges, self.families
        return (
            any((symbols, exchanges, families))
            and (not symbols or str(trajectory.symbol) in symbols)
            and (not exchanges or all(leg.exchange in exchanges for leg in trajectory.legs))
            and (not families or trajectory.family in families)
        )

    @property
    def back_s(self) -> int:
        """``back`` in seconds."""
        return parse_length(self.back, parameter="back")

    @property
    def keep_s(self) -> int:
        """``keep`` in seconds."""
        return parse_length(self.keep, parameter="keep")


def find_watchlist(store: Path, given: str | Path | None = None) -> Watchlist:
    """Read the file given, else the ``rail.toml`` of `settings_file`, else the default.

    That has the 5 symbols with the most legs, every event log and every snapshot.
    """
    if given is not None:
        return Watchlist.read(given)
    found = settings_file(store)
    if found is None or "follow" not in read_settings(found, "watchlist"):
        return Watchlist.default()
    return Watchlist.read(found)


def settings_file(store: Path) -> Path | None:
    """Return the ``rail.toml`` beside the store, else in the working directory, else None."""
    places = dict.fromkeys((store.absolute().parent / FILE_NAME, Path.cwd() / FILE_NAME))
    return next((path for path in places if path.is_file()), None)


def read_settings(path: str | Path, parameter: str) -> dict[str, Any]:
    """Read a ``rail.toml``: the tables ``follow`` and ``alert``, and the names beside them.

    Raises `InputError` about ``parameter`` unless it is TOML with only these names.
    """
    _, document = read_toml(path, parameter, "a TOML file of rules", advice=_PRINTS_ONE)
    check_names(str(path), document, _SECTIONS)
    return document


def pages_days(store: Path, given: float | None = None) -> float:
    """Return how long a load's pages are kept (days): as given, as in ``rail.toml``, or 30.

    0 keeps none. Raises `InputError` for anything but a number from 0 to 36,500.

    >>> pages_days(Path("rail.duckdb"), 7)
    7.0
    """
    settings = settings_file(store) if given is None else None
    said = {} if settings is None else read_settings(settings, "settings")
    found = said.get("pages_days", KEPT_DAYS) if given is None else given
    days: float = _days("pages_days", found)
    return days


def find_fees(store: Path, given: FeeModel | str | Path | None = None) -> FeeModel | None:
    """Return the fee table given, or read its file or `fees_file`'s. None without any.

    Raises `InputError` for a file that is not a fee table.
    """
    if given is not None:
        return given if isinstance(given, FeeModel) else FeeModel.read(given)
    path = fees_file(store)
    return None if path is None else FeeModel.read(path)


def fees_file(store: Path) -> Path | None:
    """Return the file beside ``rail.toml`` that its ``fees = "fees.toml"`` names, or None."""
    settings = settings_file(store)
    named = None if settings is None else read_settings(settings, "settings").get("fees")
    if settings is None or named is None:
        return None
    if not isinstance(named, str) or not named:
        raise InputError(f"{settings} fees", named, 'the name of a file, e.g. "fees.toml"')
    return settings.parent / named


def _keys(parameter: str, value: object) -> tuple[str, ...]:
    given = texts(parameter, value)
    for each in given:
        try:
            read_keys(each)
        except InputError as error:
            raise InputError(parameter, each, error.allowed, advice=error.advice) from None
    return given


def _length(parameter: str, value: object) -> str:
    seconds = parse_length(cast("str", value), parameter=parameter)
    return value if isinstance(value, str) else f"{seconds}s"


_days = typed(float, f"days from 0 to {_LONGEST_DAYS}", ge=0, le=_LONGEST_DAYS)
_seconds = typed(float, "seconds from 1 to 86400", ge=1, le=86_400)
_count = typed(int, "a whole number of 1 or more", ge=1)
_percent = typed(float, "percent above 0, to 1000", advice="1.0 is one percent", gt=0, le=1_000)
_CHECKS: dict[str, Callable[[str, object], object]] = {
    "streams": _keys,
    "symbols": texts,
    "exchanges": texts,
    "families": among(Family),
    "open_now": switch,
    "top_open": optional(_count),
    "widest_funding": switch,
    "events_above_pct": optional(_percent),
    "events_within": _length,
    "snapshots": among(SnapshotKind),
    "back": _length,
    "keep": _length,
    "poll_s": _seconds,
    "sweep_s": _seconds,
    "rules_s": _seconds,
}
"""The check of each field of a watchlist."""
