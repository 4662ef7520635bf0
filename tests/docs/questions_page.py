"""docs/questions.md: ten questions, the one call of each, what it returns. `make docs` writes it.

The calls run over a simulated market whose clock stands, so that each run has the same answers.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.cards import Card, readable_tables
from toolkit.loader import PlannedLoad

from .notebooks import over_a_standing_market

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
SETUP = """\
import toolkit as tk
from toolkit.statistics.fees import FeeModel

exchanges = ["AURORA", "BOREAS", "CORONA", "DRACO", "EQUINOX", "FORNAX", "GALENE"]
rail = tk.open("questions.duckdb", window="7d", fees=FeeModel.example(exchanges))
rail.sync(["BTC_USDT:AURORA.spot:*", "LTC_USDT:AURORA.spot:*"])
rail.sync(["funding/BTC_USDT:AURORA.futures:*", "events/spread", "events/splash"])
legs = ["AURORA.spot", "FORNAX.spot", "GALENE.futures"]
rail.sync([f"PEPE_USDT:{leg}" for leg in legs])
rail.sync([f"BTC_USDT:{exchange}.futures" for exchange in ("AURORA", "GALENE")])

calm, wide = "BTC_USDT:AURORA.spot:CORONA.spot", "LTC_USDT:AURORA.spot:CORONA.futures"
stale, carry = "BTC_USDT:AURORA.spot:FORNAX.spot", "BTC_USDT:AURORA.futures:GALENE.futures"
pumps = rail.events("splash")
"""
_INTRODUCTION = """\
# Ten questions, one call each

`make docs` runs each call and writes this page. The market is **SIMULATED**, the store has a week
of some streams, and the fee table is invented:

```python
{setup}```

Windows are `[start, end)` in UTC. Calls return more columns than are shown: n, coverage, the
window, intervals, and a reason for each null. `tk.statistics.explain(row, column)` describes how a
figure was computed.

"""
_ROWS = 6


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its call, the columns of the result that are shown, and what to know of it.

    ``notebook`` is the one that has more, ``row`` the row that the table at the top has.
    """

    text: str
    call: str
    columns: tuple[str, ...]
    note: str
    notebook: str = ""
    row: int = 0

    def answer(self, result: pl.DataFrame | PlannedLoad) -> tuple[str, str]:
        """Return one row of a result as a line of Markdown, and the first rows as text."""
        if isinstance(result, PlannedLoad):
            # how long it takes is of the machine, and differs from run to run
            facts = [(name, fact) for name, fact in result.card.facts if name != "takes"]
            return dict(facts)["missing"].partition(":")[0], str(Card(result.card.heading, facts))
        shown = result.select(self.columns).head(_ROWS)
        values = shown.row(self.row, named=True).items()
        return ", ".join(f"`{name}` {_cell(value)}" for name, value in values), str(shown)


QUESTIONS = (
    Question(
        "Which spread of all that I hold is widest now, and how unusual is that for it?",
        "rail.screen(top=1)",
        ("trajectory", "spread_last_log_bps", "last_z", "last_percentile"),
        "`last_z` is how many standard deviations it is from its mean of the week.",
        "02_spreads",
    ),
    Question(
        "Where does this spread lie, and how long until it returns?",
        "rail.spread(calm).summary()",
        (
            "spread_mean_log_bps",
            "spread_q05_log_bps",
            "spread_q95_log_bps",
            "half_life_s",
            "half_life_lower_s",
            "half_life_upper_s",
        ),
        "Of a deviation from the mean half is left after the half-life.",
        "02_spreads",
    ),
    Question(
        "How often and for how long is it beyond my costs?",
        "rail.spread(wide).net_episodes()",
        ("cost_highest_bps", "net_episodes", "net_duration_s", "life_median_s", "net_entry_bps"),
        "`net_duration_s` is the time of all episodes together, `net_entry_bps` what one round "
        "trip each would have kept.",
    ),
    Question(
        "Which pairs are worth it?",
        'rail.screen(where="half_life_s < 3600 and coverage > 0.95", sort="-net_edge_bps", top=3)',
        ("trajectory", "net_edge_bps", "half_life_s", "coverage"),
        "`net_edge_bps` is the area beyond the costs, in bps h per hour.",
    ),
    Question(
        "What would holding this funding pair have earned, net, and when does it break even?",
        'rail.funding(carry).holdings(horizons=["1d", "3d"])',
        (
            "horizon_s",
            "n",
            "funding_median_bps",
            "gross_median_bps",
            "net_median_bps",
            "breakeven_share",
            "breakeven_median_h",
        ),
        "Over all full hours at which it could have been entered. Gross has what prices brought.",
        "03_funding",
        row=1,
    ),
    Question(
        "How stable is funding, and which exchanges lie apart?",
        'rail.screen(family="funding")',
        ("trajectory", "funding_apr_pct", "positive_share", "flips", "same_sign_share"),
        "`tk.statistics.funding.dispersion` has how far all exchanges of a symbol are apart, "
        "through time.",
        "03_funding",
    ),
    Question(
        "How long do spread events last, those still open counted as alive so far?",
        'rail.events("spread").survival(["symbol"])',
        ("symbol", "n", "closed", "open", "median_life_s", "life_q90_s"),
        "Also by `legs`, `hour` and `size_from`.",
        "05_how_long_events_last",
    ),
    Question(
        "What does the price do after a pump or a dump?",
        "pumps.study(rail.around(pumps), before_s=900, every_s=900)",
        (
            "offset_s",
            "n",
            "return_median_log_bps",
            "return_mean_lower_log_bps",
            "return_mean_upper_log_bps",
        ),
        "A path starts at the first price known after the detection, so that the jump that made "
        "the event is not part of the return. With `from_detection=True` it is, and the columns "
        "say so.",
        "04_pumps_and_dumps",
        row=2,
    ),
    Question(
        "Which exchange moves first?",
        "rail.spread(stale).lead_lag()",
        ("peak_lag_s", "peak_correlation", "null_band", "lead_lag_ratio", "discovery_reason"),
        "A ratio far above 1 says that the buy leg does. Here it is only that FORNAX.spot repeats "
        "old closes.",
        "06_which_leads",
    ),
    Question(
        "What is missing, what is lost tomorrow, and how do I get the rest?",
        'rail.plan("BTC_USDT:AURORA.spot:*", "30d")',
        (),
        "`rail.sync` with the same arguments gets it, and `.gaps()` of a series says why a stretch "
        "is not there. How long it takes is left out here, as it differs from run to run.",
        "01_loading",
    ),
)


def _cell(value: object) -> str:
    if value is None:
        return "null"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def questions_page() -> str:
    """Run all calls, and return the page."""
    with tempfile.TemporaryDirectory() as folder, pl.Config():
        readable_tables()
        with over_a_standing_market(Path(folder)), contextlib.chdir(folder):
            names: dict[str, Any] = {}
            exec(SETUP, names)
            answers = [each.answer(eval(each.call, names)) for each in QUESTIONS]
            names["rail"].close()
    table, sections = [], []
    for number, (asked, (row, text)) in enumerate(zip(QUESTIONS, answers, strict=True), 1):
        heading = f"{number}. {asked.text}"
        table.append(f"| {heading} | `{asked.call}`<br>{row} |\n")
        call, shown = f"```python\n{asked.call}\n```", f"```text\n{text}\n```"
        name = asked.notebook
        more = f" More is in the notebook [{name}](../notebooks/{name}.ipynb)." if name else ""
        sections.append(f"\n## {heading}\n\n{call}\n\n{shown}\n\n{asked.note}{more}\n")
    head = "| question | call, and a row of its answer |\n|---|---|\n"
    return "".join([_INTRODUCTION.format(setup=SETUP), head, *table, *sections])


if __name__ == "__main__":
    PAGE.write_text(questions_page(), encoding="utf-8")
