"""The page Funding: rates in force, funding through time, and one pair."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from toolkit.cards import duration
from toolkit.charts import funding_heatmap
from toolkit.charts.heatmap import MOST_CELLS
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.fee_choice import HELD_STYLES
from toolkit.dashboard.link import PRESETS, Choice, go_to, held_window
from toolkit.dashboard.loads import FUNDING, RATES, offer
from toolkit.dashboard.open_stream import can_load, open_pair, show_failed
from toolkit.dashboard.pages.funding.choice import (
    PAIR,
    ROWS,
    TIME,
    FundingChoice,
    choose_funding,
    keep_choice,
)
from toolkit.dashboard.pages.funding.league import show_league
from toolkit.dashboard.pages.funding.matrix import show_matrix
from toolkit.dashboard.pages.funding.measured import measure_time
from toolkit.dashboard.pages.funding.pair import show_pair
from toolkit.dashboard.pages.funding.tables import kept_legs
from toolkit.dashboard.parts.rows import opened_key, row_column, show_rows, time_column
from toolkit.dashboard.reading import read_snapshot
from toolkit.dashboard.shell import PageShell, draw, page
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Market, Trajectory
from toolkit.statistics.families import extent_of
from toolkit.store import held_key
from toolkit.workspace.snapshot_tables import funding_rates

_HOUR_S = 3_600
_BUCKETS_S = {f"{hours}h": hours * _HOUR_S for hours in (1, 4, 8, 24, 168, 672)}
_FINEST = {"24 hours": "1h", "7 days": "4h", "30 days": "8h", "All": "24h"}
_CELL = ("trajectory", "ts", "funding_apr_pct", "coverage", "window_start", "window_end")
_ROW_PX, _AROUND_PX, _LEAST_PX = 24, 120, 220
_HELP = {
    "symbols": Markdown("Unweighted mean of the symbol's legs known in a bucket."),
    "legs": Markdown("Above 0 longs pay shorts."),
    "pairs": Markdown("Above 0 the pair receives: long its first leg, short its second."),
}
_SETTLED = Markdown(
    "By settled rates, each over the time that it accrued. Colours are fixed, unfilled cells are "
    "not known."
)


def show_time(shell: PageShell, bar: Container, pairs: pl.DataFrame, asked: FundingChoice) -> None:
    """Draw the heat map of the stored funding, with its cells as files in the bar."""
    if pairs["last_ts"].drop_nulls().is_empty():
        offer(shell.held, Markdown("No pair's funding is stored."), FUNDING, part="time")
        return
    window, bucket = time_buckets(pairs, asked.preset)
    rows = shell.kept(heat_rows(measure_time(shell.held, window, bucket), asked.rows))
    n = rows["trajectory"].n_unique()
    words = Markdown("**Settled funding** · {:,} {}, means of {}, {} to {}")
    moments = map(shell.moment, window)
    st.markdown(
        words.format(n, ROWS[asked.rows].lower(), duration(_BUCKETS_S[bucket]), *moments),
        help=Markdown("{} {}").format(_HELP[asked.rows], _SETTLED),
    )
    cells = rows.select("symbol", *_CELL, bucket=pl.lit(bucket), rows=pl.lit(asked.rows))
    name = f"funding_{asked.rows}_{bucket}_{window.end}"
    hand_over(bar, cells, shell.held.source, name, None)
    figure = funding_heatmap(
        rows, source=shell.held.source, unit=asked.unit, timezone=shell.timezone
    )
    figure.update_traces(showscale=True)
    figure.update_layout(height=max(_LEAST_PX, _AROUND_PX + _ROW_PX * n))
    draw(figure, key="time")


def time_buckets(pairs: pl.DataFrame, preset: str) -> tuple[Interval, str]:
    """Return the window up to the newest settlement, and a map's finest buckets.

    >>> facts = {"kind": ["funding"], "first_ts": [28800], "last_ts": [864000], "step_s": [28800]}
    >>> pairs = pl.DataFrame({"stream": ["a"]} | facts)
    >>> time_buckets(pairs, "24 hours"), time_buckets(pairs, "All")
    ((Interval(start=777600, end=864000), '1h'), (Interval(start=0, end=864000), '24h'))
    """
    settled = extent_of(pairs.iter_rows(named=True))
    assert settled is not None  # a pair has settled
    first, last = settled
    length_s = PRESETS[preset] or settled.length_s
    names = list(_BUCKETS_S)
    for bucket in names[names.index(_FINEST[preset]) :]:
        size = _BUCKETS_S[bucket]
        if 2 * pairs.height * (length_s // size + 2) <= MOST_CELLS:
            break
    end = -(-last // size) * size
    begin = first if PRESETS[preset] is None else end - length_s
    return Interval(begin // size * size, end), bucket


def heat_rows(measured: pl.DataFrame, rows: str) -> pl.DataFrame:
    """Select the rows of a heat map of symbols, legs or pairs, with the symbol of each.

    ``measured`` is of `measure_time`. A leg of several pairs is one row, with the cell of most
    coverage per bucket.
    """
    if rows == "pairs":
        found = measured.filter(of="pair")
        symbol = {key: str(Trajectory.parse(key).symbol) for key in found["trajectory"].unique()}
        return found.with_columns(symbol=pl.col("trajectory").replace_strict(symbol))
    parts = []
    for (key, of), part in (
        measured.filter(pl.col("of") != "pair")
        .partition_by("trajectory", "of", as_dict=True, maintain_order=True)
        .items()
    ):
        pair = Trajectory.parse(str(key), Family.FUNDING)
        leg = pair.sides.get(str(of))
        if leg is not None and leg.market is not Market.SPOT:
            names = {"symbol": str(pair.symbol), "trajectory": f"{pair.symbol}:{leg}"}
            parts.append(part.with_columns(**{name: pl.lit(text) for name, text in names.items()}))
    legs = pl.concat(parts or [measured.clear().with_columns(symbol=pl.lit(""))])
    legs = legs.sort("coverage", descending=True).unique(
        ["trajectory", "ts"], keep="first", maintain_order=True
    )
    legs = legs.sort("trajectory", "ts")
    if rows == "legs":
        return legs
    same = ("window_start", "window_end")
    return (
        legs.group_by("symbol", "ts")
        .agg(pl.col("funding_apr_pct", "coverage").mean(), pl.col(*same).first())
        .with_columns(trajectory="symbol")
        .sort("trajectory", "ts")
    )


_TABLE_LEAST_PX = 460


def _body(shell: PageShell) -> None:
    held = shell.held
    pairs = held.streams.filter(kind=Family.FUNDING.value)
    keys: list[str] = pairs["stream"].to_list()
    answer = read_snapshot(held.path, "funding", version=held.version)
    if answer is None and not keys:
        what = Markdown("{} has no funding yet.").format(markdown(held.place))
        offer(held, what, RATES, FUNDING)
        return
    with st.container(gap="xsmall"):
        bar = side_by_side(key="filters_row")
        _open_row(shell, keys, st.container())
        asked = choose_funding(bar, keys)
        net = shell.fees.net(HELD_STYLES)
        net = net and replace(net, notional=asked.notional)
        if asked.view == PAIR:
            rates = None if answer is None else funding_rates(answer[1])
            show_pair(shell, pairs, asked, net, rates)
        elif asked.view == TIME:
            show_time(shell, bar, pairs, asked)
        else:
            with st.grid(2, min_column_width=_TABLE_LEAST_PX):
                with st.container(gap="xsmall"):
                    show_matrix(shell, answer, asked.unit)
                with st.container(gap="xsmall"):
                    show_league(shell, bar, asked, net)
            _show_kept(shell)


def _open_row(shell: PageShell, keys: list[str], place: Container) -> None:
    if (leg := opened_key("kept")) is not None:
        _open_leg(shell, leg)
    key = opened_key("rates") or opened_key("league")
    if key is None:
        show_failed(place)
        return
    keep_choice()
    if key.startswith("snapshot-"):
        _open_leg(shell, key)
    elif can_load(key) and held_key(key, keys) is not None:
        go_to("funding", trajectory=key)
    else:
        open_pair(shell, key, place)


def _open_leg(shell: PageShell, key: str) -> None:
    window = held_window(shell.held.streams, key).last(PRESETS["7 days"])
    go_to("trajectory", **Choice(key, window).params)


def _show_kept(shell: PageShell) -> None:
    kept = shell.kept(kept_legs(shell.held.streams))
    if kept.is_empty():
        return
    label = Markdown("Legs known from snapshots alone")
    st.markdown(
        Markdown("**{}** · n = {:,}").format(label, kept.height),
        help=Markdown(
            "No settlements of these are stored, only the rate in force at each snapshot, which "
            "pays nothing until it settles."
        ),
    )
    columns = [
        *(row_column(kept, name) for name in ("symbol", "leg", "rows")),
        time_column(kept, "last_ts", shell.timezone, narrow=False),
    ]
    show_rows(label, kept["stream"].to_list(), columns, "kept", most=6)


if __name__ == "__main__":
    page(Markdown("Funding"), _body)
