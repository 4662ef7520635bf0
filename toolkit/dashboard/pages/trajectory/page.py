"""The page of one trajectory: its chart, figures of what is zoomed into, and what is below them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from toolkit.charts.subject import subject_of
from toolkit.dashboard.loads import WATCHLIST, offer
from toolkit.dashboard.opening import offer_absent, offer_history
from toolkit.dashboard.pages.trajectory.below import show_below
from toolkit.dashboard.pages.trajectory.beyond import measure_beyond
from toolkit.dashboard.pages.trajectory.chart import draw_explored
from toolkit.dashboard.pages.trajectory.choice import asked_key, choose_trajectory, chosen_part
from toolkit.dashboard.pages.trajectory.explorer import Explored, asked_of
from toolkit.dashboard.pages.trajectory.figures import (
    measure_explored,
    show_figures,
    show_kept,
    show_notes,
)
from toolkit.dashboard.pages.trajectory.held_pairs import with_pair
from toolkit.dashboard.parts.analyses import show_analyses
from toolkit.dashboard.shell import PageShell, page, show_alone
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family
from toolkit.tables import SNAPSHOT_SERIES

_SHOWN = [Family.PRICE.value, Family.SPREAD.value, "pair", *SNAPSHOT_SERIES]


def _body(shell: PageShell) -> None:
    shell = replace(shell, held=with_pair(shell.held, asked_key()))
    catalogue = shell.held.streams.filter(pl.col("kind").is_in(_SHOWN))
    if catalogue.is_empty():
        what = Markdown("{} holds no price and no spread yet.")
        offer(shell.held, what.format(markdown(shell.held.place)), WATCHLIST)
        return
    logged = "spread" in set(shell.held.logs["family"])
    choice = choose_trajectory(shell, catalogue, logged=logged)
    offer_absent(shell)
    key = choice.trajectory
    mine = catalogue.row(by_predicate=pl.col("stream") == key, named=True)
    offer_history(shell, key, mine["rows"])
    show_alone(lambda: _show(Explored(shell, subject_of(key), chosen_part(choice))))


def _show(explored: Explored) -> None:
    rows, events = explored.rows(), explored.events()
    beyond = measure_beyond(explored, rows)
    draw_explored(explored, rows, events, beyond)
    row = None
    if not rows.is_empty():
        row = measure_explored(explored, rows)
        show_figures(explored, row, beyond)
        show_notes(explored, row)
        if explored.trajectory.family is Family.SPREAD:
            show_kept(explored)
    show_below(explored, rows, row, events)
    if row is not None:
        show_analyses(explored.shell, asked_of(explored))


if __name__ == "__main__":
    page(Markdown("Trajectory"), _body)
