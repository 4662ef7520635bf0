"""What is typed in another way and meant beyond doubt is taken, and what is closed says so."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from polars.testing import assert_frame_equal

import toolkit as tk
from toolkit import charts, parse_ts
from toolkit.client import AsyncClient, Client
from toolkit.errors import EmptyWindowError, InputError, RailError
from toolkit.statistics import spread
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, PRICE, RATES, WINDOW
from .judged import fault_of, run


def test_an_object_serves_as_its_text_does_and_comes_from_any_workspace(rail: Workspace) -> None:
    whole = rail.prices(PRICE, *WINDOW)
    same = Workspace(rail.client, Store(rail.store.path))
    for key in (whole.stream, same.prices(PRICE).stream, str(whole.stream)):
        assert rail.prices(key, *WINDOW).data_hash == whole.data_hash
        assert rail.store.series(key).height == len(rail.prices(PRICE))


def test_a_funding_pair_asked_for_by_funding_needs_no_prefix(rail: Workspace) -> None:
    assert rail.funding(RATES.removeprefix("funding/")).data_hash == rail.funding(RATES).data_hash
    assert rail.events("events/spread").data_hash == rail.events("spread").data_hash


EIGHT = NOW - 7_200  # 2026-11-03 22:00 UTC


@pytest.mark.parametrize(
    "start",
    [
        np.int64(EIGHT),
        np.uint32(EIGHT),
        "2026-11-03 22:00",
        np.datetime64("2026-11-03T22"),
        np.datetime64(EIGHT * 10**9, "ns"),
        pd.Timestamp("2026-11-03 22:00"),
        pd.Timestamp("2026-11-03 23:00", tz="Europe/Berlin"),
        pd.DatetimeIndex(["2026-11-03 22:00"])[0],
    ],
    ids=repr,
)
def test_a_moment_may_have_any_of_these_forms_and_is_utc_without_a_zone(
    rail: Workspace, names: dict[str, Any], start: Any
) -> None:
    assert parse_ts(start) == EIGHT
    series = rail.prices(PRICE, start, NOW)
    assert (series.window.start, series.df["ts"][0]) == (EIGHT, EIGHT)
    summary = spread.summary(names["frame"], start, NOW)
    assert summary["window_start"].item() == EIGHT


@pytest.mark.parametrize("day", ["2026-11-04", dt.date(2026, 11, 4), pd.Timestamp("2026-11-04")])
def test_a_date_is_its_midnight_at_either_end(rail: Workspace, day: Any) -> None:
    assert rail.prices(PRICE, "2026-11-03", day).window == (NOW - 86_400, NOW)
    with pytest.raises(EmptyWindowError):
        rail.prices(PRICE, day, "2026-11-05")


@pytest.mark.parametrize("typo", ["spred_log_bps", "prise"])
def test_a_misspelt_column_is_not_among_those_allowed(names: dict[str, Any], typo: str) -> None:
    with pytest.raises(InputError) as refused:
        run(f"spread.summary(frame, column={typo!r})", names)
    assert typo not in refused.value.allowed


def test_a_lazy_frame_gives_what_its_rows_give(rail: Workspace) -> None:
    pair = rail.spread(PAIR)
    assert_frame_equal(spread.summary(pair.lazy()), spread.summary(pair.df))
    lazy, eager = (
        charts.spread_chart(frame, source=pair.source) for frame in (pair.lazy(), pair.df)
    )
    assert lazy.to_json() == eager.to_json()


def test_a_frame_without_rows_in_a_window_that_is_named_draws_a_sentence(rail: Workspace) -> None:
    pair = rail.spread(PAIR)
    figure = charts.spread_chart(
        pair.df.clear(), trajectory=PAIR, source=pair.source, start="2026-11-03", end="2026-11-04"
    )
    assert "rail sync" in figure.to_json()
    assert spread.summary(pair.df.clear(), "2026-11-03", "2026-11-04").is_empty()


def test_numbers_of_numpy_are_as_good_as_pythons(rail: Workspace) -> None:
    pair = rail.spread(PAIR)
    assert pair.episodes(np.float64(10)).equals(pair.episodes(10))
    assert pair.episodes(np.int64(10)).equals(pair.episodes(10))
    assert pair.plot(thresholds_bps=np.array([10.0])).data[-1].name == "threshold +10 bps"
    step = rail.prices(PRICE)
    assert step.plot(points=np.int64(50)).to_json() == step.plot(points=50).to_json()


def test_a_closed_workspace_loads_nothing_and_still_reads(rail: Workspace, service: str) -> None:
    closed = tk.open(rail.store.path, base_url=service, api_key="demo-pro")
    closed.close()
    for ask in (lambda: closed.sync(PRICE, "1h"), closed.symbols, lambda: closed.client):
        with pytest.raises(RailError, match=r"closed; tk.open\(\) opens another") as refused:
            ask()
        assert fault_of(refused.value) == ""
    assert len(closed.prices(PRICE)) == len(rail.prices(PRICE))


def test_a_closed_client_says_so(service: str) -> None:
    client = Client(service, "demo-pro")
    client.symbols()
    client.close()
    with pytest.raises(RailError, match="closed") as refused:
        client.symbols("BTC")
    assert fault_of(refused.value) == ""

    async def ask() -> None:
        other = AsyncClient(service, "demo-pro")
        await other.close()
        await other.symbols()

    with pytest.raises(RailError, match="closed") as refused:
        asyncio.run(ask())
    assert fault_of(refused.value) == ""
