"""Whatever windows are loaded, whenever: the store ends with what the service shows, once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Leg, Trajectory
from toolkit.service import Bars, Clock, Config, running
from toolkit.service.market.source import Whole
from toolkit.store import Store

from ..conftest import examples

PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
HORIZON = 200_000


class Holed(Whole):
    """A source with one leg: bars of one length, some of them missing."""

    kind = "simulated"
    id = "holed"
    listing = {"BTC_USDT": (Leg.parse("AURORA.spot"),)}  # noqa: RUF012 - the protocol's shape

    def __init__(self, interval_s: int, missing: set[int]) -> None:
        kept = [i for i in range(HORIZON // interval_s) if i not in missing] or [0]
        ts = np.array(kept) * interval_s
        self._bars = Bars(ts=ts, price=1.0 + ts, interval_s=interval_s)

    def bars(self, symbol: str, leg: Leg) -> Bars:
        assert (symbol, leg) == ("BTC_USDT", PRICE.buy)
        return self._bars


class HandSet:
    """A service's clock that the test moves."""

    at = 0

    def now(self) -> int:
        return self.at

    def http_date(self) -> str:
        return Clock(fixed_at=self.at).http_date()


moments = st.integers(1, HORIZON)
steps = st.lists(st.tuples(moments, st.tuples(moments, moments)), min_size=1, max_size=4)


@examples(15)
@given(
    interval_s=st.sampled_from([60, 300, 3600]),
    missing=st.sets(st.integers(0, 120), max_size=60),
    history=steps,
)
def test_any_sequence_of_syncs_ends_with_every_visible_row_once(
    interval_s: int, missing: set[int], history: list[tuple[int, tuple[int, int]]]
) -> None:
    source, clock = Holed(interval_s, missing), HandSet()
    clocks = sorted(now for now, _ in history)
    windows = [(min(w), max(w) + 1) for _, w in history]
    bars = source.bars("BTC_USDT", PRICE.buy).ts.tolist()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Config(source, port=0, clock=clock)) as service,  # type: ignore[arg-type]  # a clock by its two methods
        Client(service.base_url, "demo-pro") as client,
    ):
        store = Store(Path(folder) / "rail.duckdb")
        for now, window in [*zip(clocks, windows, strict=True), (HORIZON, (0, HORIZON))]:
            clock.at = now
            sync(client, store, [PRICE], Interval(*window))
            seen = store.series(PRICE, Interval(*window))["ts"].to_list()
            assert seen == [t for t in bars if window[0] <= t < window[1] and t + interval_s <= now]
        assert store.catalogue()["revisions"].to_list() == [0]
