"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from toolkit.cli.show import errors
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, asked_window, parse_length

if TYPE_CHECKING:
    from toolkit.analyses import Analysis
    from toolkit.statistics.fees.fee_table import Style
    from toolkit.store import Store
    from toolkit.workspace.answers import Costs
    from toolkit.workspace.pairs import Joining
    from toolkit.workspace.selection import Passes, Selection

_NAMED = re.compile(r"(--\S+?)(?: ([A-Z]+))?: ")
_NAMES = ("--start", "--end")
_ANY_NOON = 1_000_036_800
_ALL_YEARS = Interval(-62_135_596_800, 253_402_300_799)
_JOINING = ("--fx", "--multiplier", "--max-stale")

EDIT = "`rail fees --example > fees.toml` writes one to edit"
"""Advice where a fee table is missing."""

SHARED = {
    "store": "The DuckDB file. Default: RAIL_STORE, else rail.duckdb.",
    "cluster": "Compute on many processes, over published data (--store archive): a number of "
    "them, local, tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler.",
    "plain_text": "Send data and code unencrypted to a cluster off this machine.",
    "base_url": "The service. Default: RAIL_BASE_URL, else http://127.0.0.1:8700.",
    "allow_http": "Send the key unencrypted to an http address off this machine. Default: "
    "RAIL_ALLOW_HTTP, else refused.",
    "funding_only": "Leave prices out: use settlements only. The columns say so.",
    "start": "Start of the window, UTC: 2023-03-01 or 2023-03-01T12:00:00Z. Without --end also a "
    "whole window: 7d, 12h, today, yesterday, 2023-03.",
    "end": "End of the window, UTC, not included.",
    "fees": "--fees FILE: The fee table for net figures. Default: the one that rail.toml names, "
    "else none.",
    "style": "How a position is taken: taker (default), maker, maker_buy, maker_sell, prefunded, "
    "transfer.",
    "notional": "Size of one leg in the quote currency, for gas. Default: 10000.",
    "fx": "--fx KEY: For pairs in two quote currencies: the price of one in the other, unless "
    "the key names it.",
    "multiplier": "For pairs: how many coins of the buy leg equal one of the sell leg. Default: "
    "from the names.",
    "max_stale": "For pairs: the greatest age of a price, such as 5m. Default: until its next bar "
    "is due.",
    "exchanges": "--exchanges NAMES: Real exchanges over ccxt, without an account: binance,okx, or "
    "usual for five of them.",
    "symbols": "--symbols SYMBOLS: With --exchanges: BTC_USDT,ETH_USDT. Default: BTC, ETH, SOL, "
    "XRP and DOGE in USDT.",
    "host": "The address to listen on.",
    "port": "The port to listen on; 0 takes a free one.",
    "share": "Let others in after a login: see --set-password and docs/sharing.md.",
    "name": "With --share: a host name under which others reach the dashboard, such as a proxy's.",
    "proxy": "--proxy ADDRESS: With --share: the address of a proxy, which reports the client "
    "and whether it uses https.",
    "browser": "--browser/--no-browser: Open a browser window.",
}
"""The help of options that several commands have, by the name of their parameter."""

STREAM_KEYS = (
    "SYMBOL:EXCHANGE.market (price), SYMBOL:BUY.market:SELL.market (spread), "
    "funding/SYMBOL:BUY.market:SELL.market, events/FAMILY, snapshot/KIND."
)
"""The forms of the keys of streams, for a help text."""

DashboardPort = Annotated[
    int, typer.Option("--port", help="The port of the dashboard, or the next free one.")
]
OneFamily = Annotated[EventFamily | None, typer.Argument(help="Only this family.")]


def window(
    start: str | None, end: str | None, *, now: Callable[[], int], default: Callable[[], Interval]
) -> Interval:
    """Return the window of --start and --end, as `toolkit.market.asked_window` reads them."""
    return Interval.checked(*asked_window(start, end, now=now, default=default, names=_NAMES))


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """A window of a store, as typed."""

    start: str | None = None
    end: str | None = None
    store: Path | None = None

    def check(self) -> None:
        """Raise `InputError` for an invalid time or window, without reading the store."""
        window(self.start, self.end, now=lambda: _ANY_NOON, default=lambda: _ALL_YEARS)


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """Options of how pairs are joined, as typed."""

    fx: str | None = None
    multiplier: float | None = None
    max_stale: str | None = None

    def joining(self) -> Joining:
        """Return how pairs are joined. Raises `InputError` for an invalid age."""
        from toolkit.workspace.pairs import Joining  # noqa: PLC0415 - a help needs none of it

        stale = self.max_stale
        stale_s = None if stale is None else parse_length(stale, parameter="--max-stale")
        return Joining(self.fx, self.multiplier, stale_s)


@dataclass(frozen=True, slots=True)
class MeasuredWindow(StoredWindow):
    """A window of stored trajectories and the processes that measure them, as typed."""

    cluster: str | None = None
    plain_text: bool = False

    def of(
        self,
        store: Store,
        family: Family,
        keys: Sequence[str] | None,
        joining: Joining | None = None,
    ) -> Selection:
        """Return the selection in a store, and name on stderr the pairs that are turned."""
        from toolkit.workspace.selection import Passes  # noqa: PLC0415 - as above

        passes = Passes.of(store, self.cluster, plain_text=self.plain_text)
        return selected(passes, family, keys, self, joining)


def selected(
    passes: Passes,
    family: Family,
    keys: Sequence[str] | None,
    within: StoredWindow,
    joining: Joining | None = None,
) -> Selection:
    """Return a selection, and name on stderr the pairs that are turned.

    Raises `InputError` for options of joining without the key of a pair.
    """
    from toolkit.workspace.pairs import Joining  # noqa: PLC0415 - a help needs none of it
    from toolkit.workspace.selection import Selection  # noqa: PLC0415 - as above

    joining = joining or Joining()
    if not any(key.startswith("pair/") for key in keys or ()):
        for option, given in zip(_JOINING, astuple(joining), strict=True):
            if given is not None:
                raise InputError(option, given, "with keys of pairs: pair/BUY/SELL")
    ends = (within.start, within.end)
    asked = Selection.of(passes, family, keys, *ends, joining=joining, names=_NAMES)
    for words in asked.turned:
        errors.print(words)
    return asked


@dataclass(frozen=True, slots=True)
class CostOptions:
    """Options of net figures, as typed."""

    fees: Path | None = None
    style: str | None = None
    notional: float | None = None

    @property
    def given(self) -> dict[str, object]:
        """The options that were typed, by their names."""
        return {f"--{name}": value for name, value in asdict(self).items() if value is not None}

    def chosen(self, store: Store) -> Costs | None:
        """Return the costs, None without a fee table.

        Raises `InputError` for an invalid style or notional, and for either without a fee table.
        """
        from toolkit.workspace import find_fees  # noqa: PLC0415 - a help needs none of it
        from toolkit.workspace.answers import Costs  # noqa: PLC0415 - as above

        found = find_fees(store.path, self.fees)
        if found is None:
            for option, given in self.given.items():
                raise InputError(option, given, "only with a fee table: --fees FILE", advice=EDIT)
            return None
        notional = {} if self.notional is None else {"notional": self.notional}
        return Costs(found, **notional, style=cast("Style", self.style or "taker")).check()

    def needed(self, store: Store) -> Costs:
        """Return the costs. Raises `InputError` as `chosen` does, and without a fee table."""
        costs = self.chosen(store)
        if costs is None:
            allowed = 'the file of a fee table, or fees = "fees.toml" in rail.toml'
            raise InputError("--fees", None, allowed, advice=EDIT)
        return costs


def asks(**helps: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give the options of a command their help, each by the name of its parameter.

    A help may begin with an option and METAVAR other than the parameter's. By default it is that in
    `SHARED`. Arguments are `typer.Argument`.

    >>> @asks(until="--for LENGTH: Stop after this long.")
    ... def run(until: str = "", store: Path | None = None) -> None: ...
    >>> [each.__metadata__[0].help for each in run.__annotations__.values()]
    ['Stop after this long.', 'The DuckDB file. Default: RAIL_STORE, else rail.duckdb.']
    """

    def asked(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        return signed(command, [_asking(each, helps.get(each.name)) for each in own])

    return asked


def _asking(parameter: inspect.Parameter, given: Any = None) -> inspect.Parameter:
    option = given or SHARED.get(parameter.name)
    if option is None or hasattr(parameter.annotation, "__metadata__"):
        return parameter
    if isinstance(option, str):
        named = _NAMED.match(option)
        name, metavar = named.groups() if named else (None, None)
        name = name or f"--{parameter.name.replace('_', '-')}"
        option = typer.Option(name, metavar=metavar, help=option[named.end() if named else 0 :])
    return parameter.replace(annotation=Annotated[parameter.annotation, option])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options: typer sees each field as an option.

    >>> def shown(within: StoredWindow) -> None: ...
    >>> list(inspect.signature(grouped(shown)).parameters)
    ['start', 'end', 'store']
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        each.name: each.annotation for each in own if is_dataclass(each.annotation)
    }
    taken: list[inspect.Parameter] = []
    for each in own:
        taken += _options_of(each.annotation) if each.name in groups else [_asking(each)]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    return signed(run, taken)


def _options_of(group: Any) -> list[inspect.Parameter]:
    kinds, by_name = get_type_hints(group, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    return [
        _asking(inspect.Parameter(e.name, by_name, default=e.default, annotation=kinds[e.name]))
        for e in fields(group)
    ]


def signed(command: Callable[..., None], taken: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Give a function the parameters that typer makes options of. All are passed by name."""
    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken]
    command.__dict__["__signature__"] = inspect.Signature(by_name)
    command.__annotations__ = {each.name: each.annotation for each in by_name}
    return command


def with_help(run: Callable[..., None], analysis: Analysis, typed: str) -> Callable[..., None]:
    """Give the function of a subcommand the help that its analysis declares."""
    words = [analysis.sentence, analysis.about]
    words += ["Before: rail fees --example > fees.toml"] if analysis.needs_fees else []
    words.append(f"Example: rail {typed} {analysis.example}".rstrip())
    run.__doc__ = "\n\n".join(filter(None, words))
    return run
