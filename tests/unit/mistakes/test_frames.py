"""Frames of one's own: what is no frame of the kind that is read, or not of what was named."""

from __future__ import annotations

from typing import Any

import pytest
from polars.testing import assert_frame_equal

from toolkit import charts
from toolkit.errors import InputError, RailError
from toolkit.statistics import spread
from toolkit.workspace import Workspace

from .conftest import PAIR
from .judged import Row, fault, run

MISTAKES: list[Row] = [
    # columns
    ("spread.summary(frame, column='spred_log_bps')", InputError,
     ("column: 'spred_log_bps'", "nearest: spread_log_bps")),
    ("spread.coverage(frame, column='prise')", InputError, ("column: 'prise'",)),
    ("spread.episodes(frame, enter_bps=5, column='spred_bps')",
     InputError, ("nearest: spread_bps",)),
    ("spread.time_above(frame, threshold_bps=5, column='buy_price')", InputError, ("in bps",)),
    ("spread.summary(frame, column=7)", InputError, ("column: 7",)),
    ("spread.summary(frame, column=pl.col('spread_bps'))", InputError, ("column",)),
    ("spread.with_spread(frame.rename({'buy_price': 'buy_prise'}).drop('spread_pct'))",
     InputError, ("no buy_price", "buy_prise")),
    ("tk.statistics.prices.summary(price.df.rename({'price': 'Price'}))", InputError,
     ("no price", "Price")),
    ("charts.spread_chart(price.df.drop('trajectory'), trajectory=PAIR, source=source)", InputError,
     ("spread_log_bps",)),
    ("spread.summary(frame.drop('trajectory'))", InputError, ("no trajectory",)),
    ("spread.summary(frame.rename({'ts': 'timestamp'}))", InputError, ("no ts",)),
    ("tk.statistics.survival.median_life(events.lifecycles(), 'familly')", InputError,
     ("'familly'", "nearest: family")),
    ("tk.statistics.events.lifecycles(events.rows, key=('event',), magnitude='size')", InputError,
     ("nearest: event_id",)),
    # their types
    ("spread.summary(frame.with_columns(pl.col('buy_price').cast(pl.String)).drop('spread_log_bps'))",
     InputError, ("buy_price is String", "Float64")),
    ("spread.summary(frame, column='spread_basis')", InputError, ("spread_basis is", "Float64")),
    ("tk.statistics.prices.summary(price.df.cast({'price': pl.String}))", InputError,
     ("price is String", "Float64")),
    ("spread.summary(frame.with_columns(ts='time'))", InputError,
     ("ts is Datetime", "dt.epoch('s')")),
    ("spread.summary(frame.with_columns(pl.col('ts').cast(pl.Float64)))", InputError,
     ("ts is Float64", "Int64")),
    ("spread.summary(frame.with_columns(pl.col('ts').cast(pl.String)))", InputError,
     ("ts is String", "Int64")),
    ("spread.summary(frame.cast({'ts': pl.Int32}))", InputError, ("Int64",)),
    ("spread.summary(frame.cast({'ts': pl.UInt32}))", InputError, ("Int64",)),
    ("spread.summary(of_ms)", InputError, ("milliseconds",)),
    ("charts.spread_chart(of_ms, source=source, start='2026-11-03', end='2026-11-04')", InputError,
     ("milliseconds",)),
    ("tk.statistics.funding.summary(rates_of_ms, '2026-11-03', '2026-11-04')", InputError,
     ("milliseconds",)),
    # rows
    ("spread.summary(pl.concat([frame, frame]))", InputError, ("already there", "drop the others")),
    ("spread.summary(frame.with_columns(ts=pl.lit(None, pl.Int64)))", InputError, ("no row",)),
    ("spread.summary(frame.clear())", InputError, ("no row",)),
    ("spread.summary(pl.DataFrame())", InputError, ("no trajectory",)),
    ("charts.spread_chart(pl.DataFrame(), source=source)", InputError, ("trajectory",)),
    ("charts.price_chart(two, source=source)", InputError,
     ("rows of 2 trajectories", "rows of one")),
    ("charts.spread_chart(frame, trajectory=PAIR.replace('BTC', 'ETH'), source=source)", InputError,
     ("ETH_USDT", PAIR, "whose rows")),
    ("charts.spread_chart(price.df, source=source)", InputError, ("a spread trajectory",)),
    ("charts.price_chart(frame, source=source)", InputError, ("a price trajectory",)),
    ("charts.funding_chart(frame, source=source)", InputError, ("a funding trajectory",)),
    ("charts.spread_chart(frame.drop('trajectory'), source=source)",
     InputError, ("trajectory: nothing is given",)),
    # what is no frame of polars
    ("spread.summary(pair)", InputError, ("SpreadSeries", ".df")),
    ("spread.with_spread(pair)", InputError, ("SpreadSeries", ".df")),
    ("tk.statistics.funding.carry(rates)", InputError, ("FundingSeries", ".df")),
    ("tk.statistics.fees.net_edge(pair, example, notional=1e3)",
     InputError, ("SpreadSeries", ".df")),
    ("tk.statistics.events.event_lifecycles(events, NOW - 60, NOW)", InputError,
     ("EventSeries", ".df")),
    ("tk.statistics.survival.median_life(events)", InputError, ("EventSeries", ".df")),
    ("charts.spread_chart(pair, source=source)", InputError, ("SpreadSeries", ".df")),
    ("charts.event_timeline(events, start=0, end=60, source=source)", InputError,
     ("EventSeries", ".df")),
    ("pair.plot(events=pair)", InputError, ("events: a SpreadSeries",)),
    ("pair.plot(events=frame)", InputError, ("events", "no family")),
    ("spread.summary(frame.to_pandas())", InputError, ("pandas", "pl.from_pandas")),
    ("tk.statistics.funding.summary(rates.pandas())", InputError, ("pl.from_pandas",)),
    ("pair.plot(events=events.pandas())", InputError, ("pl.from_pandas",)),
    ("spread.summary(frame.to_arrow())", InputError, ("pl.from_arrow",)),
    ("spread.summary(frame.to_dict())", InputError, ("a polars frame",)),
    ("spread.summary([1.0, 2.0])", InputError, ("a polars frame",)),
    ("spread.summary(None)", InputError, ("a polars frame",)),
    ("charts.price_chart('prices.csv', source=source)", InputError, ("a polars frame",)),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_frame_is_one_line_that_names_what_is_needed(
    ground: dict[str, Any], typed: str, kind: type[RailError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


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
