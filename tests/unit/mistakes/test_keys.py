"""Keys: what is misspelt, of another family, or no key at all. And what is meant beyond doubt."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.errors import InputError, ServiceError, UnknownTrajectoryError
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, PRICE, RATES, WINDOW
from .judged import Row, fault

MISTAKES: list[Row] = [
    # what is misspelt: the nearest
    ("rail.prices('BTC_USDT:AURORRA.spot')", UnknownTrajectoryError, ("nearest: " + PRICE, "sync")),
    ("rail.spread('BTC_USDT:AURORA.spot:CORONNA.futures')", UnknownTrajectoryError, (PAIR, "sync")),
    ("rail.prices('BTC_USDX:AURORA.spot')", UnknownTrajectoryError, ("nearest: " + PRICE,)),
    ("rail.store.series('BTC_USDX:AURORA.spot')", UnknownTrajectoryError, ("nearest: " + PRICE,)),
    ("rail.sync('BTC_USDT:AURORRA.spot')", UnknownTrajectoryError, ("not listed", PRICE)),
    ("rail.sync('BTC_USDX:*')", InputError, ("nearest", "BTC_USDT")),
    ("rail.sync('Watchlist')", InputError, ("nearest: watchlist",)),
    ("Client(service, 'demo-pro').history('BTC_USDT:AURORRA.spot', NOW - 60, NOW)",
     ServiceError, ("does not list BTC_USDT", "symbols/search")),
    # how it is written
    ("rail.prices('btc_usdt:aurora.spot')", InputError, ("exchange: 'aurora'", "AURORA")),
    ("rail.prices('btc_usdt')", InputError, ("SYMBOL:EXCHANGE.market",)),
    ("rail.prices('BTCUSDT:AURORA.spot')", InputError, ("BASE_QUOTE",)),
    ("rail.prices('BTC-USDT:AURORA.spot')", InputError, ("BASE_QUOTE", "BTC_USDT")),
    ("rail.prices('BTC_USDT:AURORA.Spot')", InputError, ("market: 'Spot'", "spot, futures, dex")),
    ("rail.prices('BTC_USDT:AURORA.perp')", InputError, ("market: 'perp'", "futures")),
    ("rail.prices('')", InputError, ("SYMBOL:EXCHANGE.market",)),
    ("tk.Trajectory.spread('BTC_USDT', 'AURORA.spot', 'AURORA.spot')", InputError, ("different",)),
    ("tk.Trajectory.price('BTC_USDT', 'AURORA', 'spots')", InputError, ("nearest: spot",)),
    # another family
    ("rail.spread(PRICE)", InputError, (PRICE, "two legs", "rail.prices")),
    ("rail.prices(PAIR)", InputError, (PAIR, "one leg", "rail.spread")),
    ("rail.prices(RATES)", InputError, (RATES, "rail.funding")),
    ("rail.spread(RATES)", InputError, (RATES, "rail.funding")),
    ("rail.funding(PRICE)", InputError, (PRICE, "two legs")),
    ("rail.spread(RATES.removeprefix('funding/'))", UnknownTrajectoryError, (RATES,)),
    ("rail.events('spreads')", InputError, ("'spreads'", "nearest: spread")),
    ("rail.series('events/fundings')", InputError, ("nearest: funding",)),
    ("rail.events('pump')", InputError, ("spread, splash, funding",)),
    ("rail.series('event/spread')", InputError, ("'event/spread'", "nearest: events/spread")),
    ("rail.series('events')", InputError, ("events/FAMILY",)),
    ("rail.events('splash')", UnknownTrajectoryError, ("events/splash is not held", "rail sync")),
    ("rail.snapshots('symbol')", InputError, ("nearest: symbols",)),
    ("rail.snapshots('spreads')", InputError, ("nearest: spread",)),
    ("rail.series('snapshot/prices')", InputError, ("symbols, activity, spread, funding",)),
    ("rail.store.events('spreads', Interval(0, 60))", InputError, ("nearest: spread",)),
    ("Client(service, 'demo-pro').snapshot('spreads')", InputError, ("nearest: spread",)),
    ("list(Client(service, 'demo-pro').event_pages('spreads', Interval(0, 60)))",
     InputError, ("nearest: spread",)),
    # what is no key
    ("rail.prices([PRICE])", InputError, ("one key", "list")),
    ("rail.prices(None)", InputError, ("one key", "nothing is given")),
    ("rail.prices(PRICE.encode())", InputError, ("one key",)),
    ("rail.spread(pair)", InputError, ("one key", "SpreadSeries")),
    ("rail.series(frame)", InputError, ("one key", "DataFrame")),
    ("rail.prices(tk.Symbol('BTC', 'USDT'))", InputError, ("one key",)),
    ("rail.prices(events.stream)", InputError, ("events/spread", "rail.events")),
    ("rail.events(price.stream)", InputError, (PRICE, "spread, splash, funding")),
    ("rail.events(['spread'])", InputError, ("['spread']", "spread, splash, funding")),
    ("rail.snapshots(None)", InputError, ("symbols, activity, spread, funding",)),
    ("rail.store.ledger(PRICE)", InputError, ("a list",)),
    ("rail.store.ledger([7])", InputError, ("one key",)),
    ("rail.sync([])", InputError, ("one key or more",)),
    ("rail.sync(None)", InputError, ("one key or more",)),
    ("rail.sync([PRICE, 7])", InputError, ("one key", "7")),
    ("rail.symbols(7)", InputError, ("a text",)),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_key_is_one_line_that_names_the_right_one(
    ground: dict[str, Any], typed: str, kind: type[InputError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


def test_an_object_serves_as_its_text_does_and_comes_from_any_workspace(rail: Workspace) -> None:
    whole = rail.prices(PRICE, *WINDOW)
    same = Workspace(rail.client, Store(rail.store.path))
    for key in (whole.stream, same.prices(PRICE).stream, str(whole.stream)):
        assert rail.prices(key, *WINDOW).data_hash == whole.data_hash
        assert rail.store.series(key).height == len(rail.prices(PRICE))


def test_a_funding_pair_asked_for_by_funding_needs_no_prefix(rail: Workspace) -> None:
    assert rail.funding(RATES.removeprefix("funding/")).data_hash == rail.funding(RATES).data_hash
    assert rail.events("events/spread").data_hash == rail.events("spread").data_hash


def test_one_text_is_as_good_as_a_list_of_one(rail: Workspace) -> None:
    results = [
        rail.sync(each, NOW - 3_600, NOW, progress=False) for each in (PRICE, [PRICE], (PRICE,))
    ]
    assert not any(result.silent or result.refused for result in results)
