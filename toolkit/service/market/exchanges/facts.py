"""Facts about exchanges that ccxt lacks, of ``toolkit/market/venues.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.errors import InputError
from toolkit.market import Market
from toolkit.market.venues import canonical, venues


class Settled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the settled history is asked for: ``rows`` a call, of the last ``reach_s``, 0 of all.

    ``by``: ``until`` or ``after`` is the parameter of a window's end, ``all`` comes at once, any
    other is the parameter of a page's number. ``stated`` is a contract's interval (h), or the field
    of the listing with its unit (s), or the method of ccxt for it. ``rate``: the raw field with the
    rate, where it isn't the one that ccxt takes.
    """

    by: str
    rows: int
    stated: int | str | tuple[str, float]
    reach_s: int = 0
    rate: str = ""


class MarketFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the spot market or the perpetuals of an exchange are read.

    ``venue``: ccxt's class, made with ``options``, its listing asked for with ``listed``. ``rows``:
    minutes a call. ``end``: the parameter of a window's end, none where ``rows`` implies it.
    ``to_now``: any window is answered up to now. ``reach_rows``: how many minutes back bars go, 0
    all. ``quote``: where a raw bar has its volume in quote, or with ``vwap`` its average price.
    ``beside``: the column that ccxt leaves out. ``closed``: where a raw bar is marked as closed,
    and how.
    """

    venue: str
    rows: int
    end: str = "until"
    reach_rows: int = 0
    to_now: bool = False
    quote: int | str | None = None
    vwap: bool = False
    beside: str = ""
    closed: tuple[int, str] = (-1, "")
    options: dict[str, Any] = {}
    listed: dict[str, Any] = {}
    settled: Settled | None = None


Facts = dict[Market, MarketFacts]
KNOWN: Mapping[str, Facts] = {
    name: msgspec.convert(told, Facts)
    for name, one in venues().items()
    if (told := {market: it for market in Market if (it := getattr(one, market, None))})
}
"""The markets of each exchange, by the name that the interface has for it."""


def named(name: str) -> Facts:
    """Return the facts of an exchange, by any name of it in any case, or raise `InputError`."""
    if (known := canonical(name.upper())) not in KNOWN:
        raise InputError("exchange", known, KNOWN)
    return KNOWN[known]
