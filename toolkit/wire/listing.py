"""The symbol listing: which trajectories a service offers.

A listing may be truncated without notice. Unless it states that it is complete it is searched, once
per last character (A-Z, 0-9) of a base, or per first one if searches match starts of names; other
characters are missed. The searches are complete if none was truncated and they have all that was
listed.

Source: docs/interface.md, "Symbols and snapshots".
"""

from __future__ import annotations

import difflib
import itertools
import re
import string
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from toolkit.cards import Card, Shown, counted, some
from toolkit.errors import InputError, WireError
from toolkit.market import Family, Leg, Market, Symbol, Trajectory
from toolkit.wire.exchange import (
    NO_CONTENT,
    UNREADABLE,
    Outcome,
    Request,
    Response,
    RetryPolicy,
    Step,
    unreadable,
    with_retries,
)
from toolkit.wire.findings import Finding
from toolkit.wire.profile.places import WHOLE, leaves, upper_levels, values_of
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.shapes import BUILT_IN_LISTING, ListingShape
from toolkit.wire.profile.spelling import AS_OURS, Spelling
from toolkit.wire.rows.body import check_number
from toolkit.wire.rows.mending import doubled_fields, read_mended


@dataclass(frozen=True, slots=True)
class Listing(Shown):
    """Symbols with their legs. ``truncated``: the service may offer more."""

    legs: dict[Symbol, tuple[Leg, ...]]
    truncated: bool
    findings: tuple[Finding, ...] = ()

    def lists(self, trajectory: Trajectory) -> bool:
        """Check that the symbol and every leg of a trajectory are listed.

        >>> listing = Listing({Symbol("BTC", "USD"): (Leg("KRAKEN", Market.SPOT),)}, False)
        >>> listing.lists(Trajectory.parse("BTC_USD:KRAKEN.spot"))
        True
        """
        one = trajectory.family is Family.FUNDING and len(trajectory.legs) == 1  # of own rows alone
        return not one and set(trajectory.legs) <= set(self.legs.get(trajectory.symbol, ()))

    def denies(self, trajectory: Trajectory) -> bool:
        """Check that a trajectory is not listed, and that no unreadable entry may be it.

        >>> odd = Finding("legs_missing", "/symbols BTC_USD", "no legs under 'venues'")
        >>> listing = Listing({Symbol("BTC", "USD"): ()}, False, (odd,))
        >>> listing.denies(Trajectory.parse("BTC_USD:KRAKEN.spot"))
        False
        >>> listing.denies(Trajectory.parse("ETH_USD:KRAKEN.spot"))
        True
        """
        of_symbol = f" {trajectory.symbol}"
        listed = trajectory.symbol in self.legs
        return not self.lists(trajectory) and not any(
            found.where.endswith(of_symbol) if listed else found.kind == "symbol_unreadable"
            for found in self.findings
        )

    @property
    def card(self) -> Card:
        """Each symbol with its legs.

        >>> print(Listing({Symbol("BTC", "USD"): (Leg("KRAKEN", Market.SPOT),)}, True).card)
        Listing: 1 symbol, 1 leg; the service holds more than it listed
          BTC_USD  KRAKEN.spot
        """
        legs = counted(sum(map(len, self.legs.values())), "leg")
        more = "; the service holds more than it listed" if self.truncated else ""
        facts = [(str(symbol), some(found, at_most=6)) for symbol, found in self.legs.items()]
        return Card(f"Listing: {counted(len(self.legs), 'symbol')}, {legs}{more}", facts)


_BETWEEN = ".:/|@-"
_LEGS = [f"{{exchange}}{between}{{market}}" for between in _BETWEEN]
_MARKET_WORDS = {
    "spot": ("spot", "cash"),
    "futures": ("futures", "future", "perp", "perpetual", "swap", "linear"),
    "dex": ("dex", "onchain", "amm"),
}
"""The usual words for a market, in any case."""
_CHARACTERS = string.ascii_uppercase + string.digits
_PARTITIONS: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("_", str.__contains__),
    ("", str.startswith),
)
"""What follows each character in a search, and which symbols such a search has to bring."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer's legs by symbol, and whether it is truncated (None: not stated)."""

    legs: dict[Symbol, tuple[Leg, ...]]
    cut: bool | None
    findings: tuple[Finding, ...] = ()


def list_symbols(
    profile: Profile, text: str, policy: RetryPolicy
) -> Generator[Step, Outcome, Listing]:
    """Request every symbol with ``text`` in its name ("" for all).

    An incomplete listing is searched for the rest, which is added with the finding ``listing_cut``.
    If that does not complete it, it is ``truncated``. If nothing shows whether it is complete, the
    finding is ``listing_unstated``.
    """
    if not isinstance(text, str):
        raise InputError("text", text, "a text that is part of a symbol's name")
    found = yield from _search(profile, text, policy)
    if not found.cut and (found.cut is False or text or not found.legs):
        return Listing(found.legs, False, found.findings)
    whole = None if text else (yield from _by_parts(profile, found, policy))
    if whole and whole.legs.keys() == found.legs.keys():
        return Listing(found.legs, False, whole.findings)
    count = f"{len(found.legs)} symbols came of {profile.symbols_limit} asked for"
    if whole:
        says = f"{count}; searched by letter there are {len(whole.legs)}"
    else:
        says = f"{count}; " + ("there are more" if found.cut else "nothing shows if these are all")
    kind = "listing_cut" if whole or found.cut else "listing_unstated"
    listed = whole or found
    findings = (*listed.findings, Finding(kind, profile.symbols_path, says))
    return Listing(listed.legs, whole is None and bool(found.cut), findings)


def _search(profile: Profile, text: str, policy: RetryPolicy) -> Generator[Step, Outcome, _Found]:
    query = {profile.listing.q: text, profile.listing.limit: profile.symbols_limit}
    answer = yield from with_retries(Request.get(profile.symbols_path, query), policy)
    return _found(profile, answer)


def _by_parts(
    profile: Profile, listed: _Found, policy: RetryPolicy
) -> Generator[Step, Outcome, _Found | None]:
    """Search everything part by part, None if incomplete."""
    for after, brings in _PARTITIONS:
        legs: dict[Symbol, tuple[Leg, ...]] = {}
        findings = dict.fromkeys(listed.findings)
        for text in (character + after for character in _CHARACTERS):
            found = yield from _search(profile, text, policy)
            legs |= found.legs
            findings |= dict.fromkeys(found.findings)
            expected = {symbol for symbol in listed.legs if brings(str(symbol), text)}
            full = found.cut is None and len(found.legs) >= len(listed.legs)
            if found.cut or full or not expected <= found.legs.keys():
                break
        else:
            if listed.legs.keys() <= legs.keys():
                return _Found(legs, False, tuple(findings))
    return None


def _found(profile: Profile, answer: Response) -> _Found:
    if answer.status == NO_CONTENT:
        return _Found({}, cut=False)
    shape = profile.listing
    findings: list[Finding] = []

    def read(body: bytes) -> dict[str, msgspec.Raw]:
        flat = shape.flat(replace(answer, body=body))
        return msgspec.json.decode(flat.body, type=dict[str, msgspec.Raw])

    try:
        page = read_mended(read, answer.body, profile.symbols_path, findings)
        check_number(page[shape.items], answer, profile.symbols_path, profile.limits.page_items)
        items = shape.listed(page[shape.items])
        cut = msgspec.json.decode(page.get(shape.truncated, b"null"), type=bool | None)
    except (*UNREADABLE, KeyError) as error:
        wanted = f"a symbol listing ({error})"
        raise unreadable(answer, profile.symbols_path, wanted) from None
    findings += doubled_fields([answer.body], profile.symbols_path)
    legs: dict[Symbol, tuple[Leg, ...]] = {}
    for raw in items:
        try:
            name, said = shape.read(raw, profile.spelling)
            symbol = Symbol.parse(name)
        except (InputError, *UNREADABLE) as error:
            findings.append(Finding("symbol_unreadable", profile.symbols_path, str(error)))
            continue
        found, where = [*legs.get(symbol, ())], f"{profile.symbols_path} {symbol}"
        if said is None:
            findings.append(Finding("legs_missing", where, f"no legs under {shape.legs!r}"))
        for each in said or ():
            try:
                found.append(shape.read_leg(each, profile.spelling))
            except (ValueError, RecursionError) as error:
                findings.append(Finding("leg_unreadable", where, str(error)))
        legs[symbol] = tuple(dict.fromkeys(found))
    if cut is None and len(items) >= profile.symbols_limit:
        cut = True
    return _Found(legs, cut, tuple(findings))


def as_snapshot(profile: Profile, answer: Response) -> Response:
    """Return a listing in our shape and words, with the answer under ``rest``.

    One of our shape, or unreadable, is unchanged.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> shape = replace(BUILT_IN_LISTING, items="pairs", symbol="*", leg="{exchange}:{market}")
    >>> other = replace(BUILT_IN, listing=shape)
    >>> as_snapshot(other, Response(200, {}, b'{"pairs": {"A_B": ["X:spot"]}}')).body
    b'{"items":[{"symbol":"A_B","venues":[{"exchange":"X","market":"spot"}]}],"rest":{...}}'
    """
    if (profile.listing, profile.spelling) == (BUILT_IN_LISTING, AS_OURS):
        return answer
    try:
        legs = _found(profile, answer).legs
    except WireError:
        return answer
    items = [{"symbol": str(symbol), "venues": of} for symbol, of in legs.items()]
    said = {"items": items, "rest": msgspec.Raw(answer.body)}
    return replace(answer, body=msgspec.json.encode(said))


def guessed_listing(profile: Profile, answer: Response) -> tuple[ListingShape, Spelling] | None:
    """Find a shape and a spelling that read all of a listing, None if there are none.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> body = b'{"pairs": {"A_B": ["X:PERP"]}}'
    >>> shape, spelling = guessed_listing(BUILT_IN, Response(200, {}, body))
    >>> shape.items, shape.symbol, shape.leg, spelling.markets
    ('pairs', '*', '{exchange}:{market}', {'futures': 'PERP'})
    """
    try:
        top = msgspec.json.decode(answer.body)
    except UNREADABLE:
        return None
    words = market_words([text for text in leaves(top).values() if isinstance(text, str)])
    said = replace(profile.spelling, markets=words)
    spellings = [profile.spelling, said, replace(said, exchange_case="upper")]
    for spelling, shape in itertools.product(spellings, [profile.listing, *_shapes(top)]):
        try:
            found = _found(replace(profile, listing=shape, spelling=spelling), answer)
        except WireError:
            continue
        if found.legs and not found.findings and all(found.legs.values()):
            return shape, spelling
    return None


def market_words(texts: Iterable[str]) -> dict[str, str]:
    """Find a listing's words for markets. A market with two words has none.

    >>> market_words(["AURORA:SPOT", "CORONA:PERP"])
    {'spot': 'SPOT', 'futures': 'PERP'}
    """
    parts = sorted({part for text in texts for part in re.split(r"[^A-Za-z]", text)})
    found = {m: [p for p in parts if p.lower() in words] for m, words in _MARKET_WORDS.items()}
    return {market: words[0] for market, words in found.items() if len(words) == 1}


def _shapes(top: object) -> Iterator[ListingShape]:
    """Yield possible shapes of a listing by its first item."""
    levels = upper_levels(top) if isinstance(top, dict) else ()
    for items, held in [(WHOLE, top), *(each for level in levels for each in level.items())]:
        shape = replace(BUILT_IN_LISTING, items=items)
        if isinstance(held, dict):
            named = replace(shape, symbol="*")
            yield from _with_legs(named, next(iter(held.values()), None))
        elif isinstance(held, list) and held and isinstance(held[0], str):
            for between in _BETWEEN:
                for leg in _LEGS:
                    yield replace(shape, symbol="", legs="", leg=f"{{symbol}}{between}{leg}")
        elif isinstance(held, list) and held:
            fields = values_of(held[0])
            for symbol in [name for name, value in fields.items() if isinstance(value, str)]:
                yield from _with_legs(replace(shape, symbol=symbol, legs=""), [fields])
                for legs, value in fields.items():
                    yield from _with_legs(replace(shape, symbol=symbol, legs=legs), value)


def _with_legs(shape: ListingShape, legs: object) -> Iterator[ListingShape]:
    if isinstance(legs, dict):
        yield shape
    elif isinstance(legs, list) and legs and isinstance(legs[0], str):
        yield from (replace(shape, leg=leg) for leg in _LEGS)
    elif isinstance(legs, list) and legs:
        names = values_of(legs[0]).keys() - ({shape.symbol} if shape.legs == "" else set())
        for exchange, market in itertools.permutations(sorted(names), 2):
            yield replace(shape, exchange=exchange, market=market)


def price_trajectories(listing: Listing) -> list[Trajectory]:
    """Return every price trajectory listed, in order of the keys.

    >>> legs = (Leg("KRAKEN", Market.SPOT), Leg("COINBASE", Market.SPOT))
    >>> listing = Listing({Symbol("BTC", "USD"): legs}, False)
    >>> [t.key for t in price_trajectories(listing)]
    ['BTC_USD:COINBASE.spot', 'BTC_USD:KRAKEN.spot']
    >>> [t.key for t in spread_trajectories(listing)]
    ['BTC_USD:COINBASE.spot:KRAKEN.spot']
    """
    found = (
        Trajectory(Family.PRICE, s, (leg,)) for s, legs in listing.legs.items() for leg in legs
    )
    return sorted(found, key=lambda trajectory: trajectory.key)


def spread_trajectories(listing: Listing) -> list[Trajectory]:
    """Return each pair of legs of a symbol once, the alphabetically first leg bought."""
    found = (
        Trajectory(Family.SPREAD, symbol, pair)
        for symbol, legs in listing.legs.items()
        for pair in itertools.combinations(sorted(legs), 2)
    )
    return sorted(found, key=lambda trajectory: trajectory.key)


def funding_trajectories(listing: Listing) -> list[Trajectory]:
    """Return each pair of a symbol's futures legs once, the first by name bought.

    >>> legs = (Leg("A", Market.FUTURES), Leg("B", Market.FUTURES), Leg("B", Market.SPOT))
    >>> [t.key for t in funding_trajectories(Listing({Symbol("BTC", "USD"): legs}, False))]
    ['funding/BTC_USD:A.futures:B.futures']
    """
    return [
        Trajectory(Family.FUNDING, spread.symbol, spread.legs)
        for spread in spread_trajectories(listing)
        if all(leg.market is Market.FUTURES for leg in spread.legs)
    ]


def nearest_keys(trajectory: Trajectory, listing: Listing) -> Sequence[str]:
    """Find up to three listed keys of the same family that resemble a given one.

    >>> listing = Listing({Symbol("BTC", "USD"): (Leg("KRAKEN", Market.SPOT),)}, False)
    >>> nearest_keys(Trajectory.parse("BTC_USD:KRAKEM.spot"), listing)
    ['BTC_USD:KRAKEN.spot']
    """
    price = trajectory.family is Family.PRICE
    known = price_trajectories(listing) if price else spread_trajectories(listing)
    return difflib.get_close_matches(trajectory.key, [t.key for t in known], n=3, cutoff=0.5)
