"""The page of funding: the rates in force, and one pair's differential and carry."""

from __future__ import annotations

from dataclasses import replace

from toolkit.dashboard.fee_choice import HELD_STYLES
from toolkit.dashboard.link import PRESETS, Choice, held_window
from toolkit.dashboard.loads import FUNDING, RATES, offer
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.opening import can_load, open_pair, show_failed
from toolkit.dashboard.pages.funding.choice import PAIR, TIME, choose_funding, keep_choice
from toolkit.dashboard.pages.funding.league import show_league
from toolkit.dashboard.pages.funding.matrix import show_matrix
from toolkit.dashboard.pages.funding.pair import show_pair
from toolkit.dashboard.pages.funding.tables import kept_legs
from toolkit.dashboard.pages.funding.time import show_time
from toolkit.dashboard.parts.rows import opened_key, row_column, show_rows, time_column
from toolkit.dashboard.reading import read_snapshot
from toolkit.dashboard.screen import Screen, st
from toolkit.dashboard.shell import PageShell, page
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family
from toolkit.store import held_key
from toolkit.workspace.snapshot_tables import funding_rates

_TABLE_LEAST_PX = 460


def _body(shell: PageShell) -> None:
    held = shell.held
    pairs = held.streams.filter(kind=Family.FUNDING.value)
    keys: list[str] = pairs["stream"].to_list()
    answer = read_snapshot(held.path, "funding", version=held.version)
    if answer is None and not keys:
        offer(
            held,
            Markdown("{} holds no funding yet.").format(markdown(held.place)),
            *(RATES, FUNDING),
        )
        return
    with st.container(gap="xsmall"):
        bar = st.container(
            horizontal=True, vertical_alignment="center", gap="small", key="filters_row"
        )
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


def _open_row(shell: PageShell, keys: list[str], place: Screen) -> None:
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
    st.markdown(
        Markdown("**Legs known from snapshots alone** · n = {:,}").format(kept.height),
        help=Markdown(
            "Of these no pair's settlements are held: what is kept is the rate in force at each "
            "snapshot, which pays nothing until it settles."
        ),
    )
    columns = [
        *(row_column(kept, name) for name in ("symbol", "leg", "rows")),
        time_column(kept, "last_ts", shell.timezone, narrow=False),
    ]
    show_rows(
        Markdown("Legs known from snapshots alone"),
        kept["stream"].to_list(),
        columns,
        "kept",
        most=6,
    )


if __name__ == "__main__":
    page(Markdown("Funding"), _body)
