"""A figure shows itself in every front end, and draws the rows of the one trajectory named."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path

import plotly.graph_objects as go
import plotly.io as pio
import polars as pl
import pytest
from IPython.core.formatters import DisplayFormatter
from plotly.offline import get_plotlyjs

from toolkit.charts import Figure, coverage_chart, funding_chart, price_chart, spread_chart
from toolkit.errors import InputError
from toolkit.market import Source, Trajectory

JSON = "application/vnd.plotly.v1+json"
ROWS = pl.DataFrame({"trajectory": "A_B:X.spot", "ts": [0, 60], "price": [1.0, 2.0]})


def chart(**options: str) -> Figure:
    return price_chart(ROWS, source=Source("replay", "made up"), **options)


def test_ipython_shows_a_figure_in_three_forms_whatever_renderer_plotly_has() -> None:
    forms, about = DisplayFormatter().format(chart())
    assert set(forms) == {JSON, "text/html", "text/plain"}
    assert forms["text/plain"] == "Figure: A_B: price"
    assert forms[JSON]["data"][0]["name"] == "price"
    assert json.loads(json.dumps(forms[JSON])) == forms[JSON]
    assert about == {}


def test_its_html_has_plotly_once_and_asks_for_nothing_outside() -> None:
    html = chart()._repr_html_()
    assert html.count(get_plotlyjs()) == 1
    own = html.replace(get_plotlyjs(), "")
    assert len(own) < 12_000
    assert not re.search(r"https?:|//cdn| src=|import", own)
    assert re.findall("MathJax.*?;", own) == ["MathJaxConfig: 'local'};"]


def test_no_text_of_a_figure_ends_its_script_or_adds_a_tag() -> None:
    hostile = "</script><script>alert(1)</script><!--"
    figure = Figure(go.Bar(x=[hostile], y=[1]), layout={"title": {"text": hostile}})
    own = figure._repr_html_().replace(get_plotlyjs(), "")
    assert "alert(1)</script>" not in own
    assert "<!--" not in own
    assert own.count("<script>") == own.count("</script>") == 2


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_a_copy_is_the_same_figure_and_still_follows_its_viewer(again) -> None:
    figure = chart()
    assert type(again(figure)) is Figure
    assert again(figure) == figure
    assert '"dark": {' in again(figure)._repr_html_()


def test_it_is_plotlys_figure_to_plotly(tmp_path: Path) -> None:
    figure = chart()
    assert isinstance(figure, go.Figure)
    assert type(figure.update_layout(height=300)) is Figure
    assert json.loads(pio.from_json(figure.to_json()).to_json()) == json.loads(figure.to_json())
    figure.write_html(tmp_path / "chart.html")
    assert "Plotly.newPlot" in (tmp_path / "chart.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("figure", "follows"),
    [
        (chart(), True),
        (chart(theme="light"), False),
        (chart(theme="dark"), False),
        (chart().update_layout(template="plotly_dark"), False),
        (Figure(), False),
        (Figure(layout={"template": "rail"}), True),
    ],
)
def test_colours_follow_the_viewer_unless_a_theme_or_a_template_was_asked_for(
    figure: Figure, follows: bool
) -> None:
    own = figure._repr_html_().replace(get_plotlyjs(), "")
    assert ('"dark": {' in own) == follows
    assert ('"dark": null' in own) != follows


def test_a_figure_without_a_title_is_named_by_its_sentence() -> None:
    empty = price_chart(
        ROWS.clear(), trajectory="A_B:X.spot", start=0, end=60, source=Source("", "")
    )
    assert DisplayFormatter().format(empty)[0]["text/plain"].startswith("Figure: No rows of A_B:X.")
    assert DisplayFormatter().format(Figure())[0]["text/plain"] == "Figure: without a title"


MARCH = 1_677_628_800
SOURCE = Source("replay", "depeg")
PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"
SPREADS = pl.DataFrame(
    {
        "trajectory": [PAIR] * 3,
        "ts": [MARCH, MARCH + 60, MARCH + 120],
        "buy_price": [100.0] * 3,
        "sell_price": [101.0] * 3,
        "spread_log_bps": [99.5] * 3,
    }
)
PRICES = SPREADS.select("ts", price="buy_price", trajectory=pl.lit("BTC_USD:KRAKEN.spot"))
RATES = pl.DataFrame(
    {
        "trajectory": ["funding/BTC_USD:A.futures:B.futures"] * 2,
        "ts": [MARCH, MARCH + 28_800],
        "buy_rate": [0.0] * 2,
        "sell_rate": [1e-4] * 2,
        "buy_interval_hours": [8.0] * 2,
        "sell_interval_hours": [8.0] * 2,
    }
)
CHARTS = [(spread_chart, SPREADS), (price_chart, PRICES), (funding_chart, RATES)]


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_what_the_frame_knows_need_not_be_said(chart, rows) -> None:
    named = Trajectory.parse(rows["trajectory"][0])
    end = MARCH + 28_800 if chart is funding_chart else MARCH + 180
    start = MARCH - 28_800 if chart is funding_chart else MARCH
    said = chart(
        rows.drop("trajectory"), trajectory=named, start=start, end=end, source=SOURCE
    ).to_plotly_json()
    for figure in (
        chart(rows, source=SOURCE),
        chart(rows, trajectory=named.key, start=start, source=SOURCE),
        chart(rows, source=SOURCE, end=f"2023-03-01T{'08:00' if end > MARCH + 180 else '00:03'}"),
    ):
        assert str(figure.to_plotly_json()) == str(said)


@pytest.mark.parametrize(("chart", "rows"), CHARTS)
def test_rows_are_drawn_under_the_name_of_their_one_trajectory_alone(chart, rows) -> None:
    other = rows["trajectory"][0].replace("BTC", "ETH")
    with pytest.raises(InputError, match=f"trajectory: '{other}' is not allowed; .* has"):
        chart(rows, trajectory=other, source=SOURCE)
    both = pl.concat([rows, rows.with_columns(trajectory=pl.lit(other))])
    with pytest.raises(InputError, match="rows of 2 trajectories"):
        chart(both, source=SOURCE)
    with pytest.raises(InputError, match="where the frame names none"):
        chart(rows.drop("trajectory"), source=SOURCE)
    with pytest.raises(InputError, match="where the frame names none"):
        chart(rows.clear(), source=SOURCE)


def test_the_chart_of_a_ledger_takes_text() -> None:
    ledger = pl.DataFrame({"start_ts": [MARCH], "end_ts": [MARCH + 60], "state": ["held"]})
    figure = coverage_chart(
        ledger, trajectory=PAIR, start="2023-03-01", end="2023-03-01T00:01", source=SOURCE
    )
    assert figure.data[0].name.startswith("held")
    with pytest.raises(InputError, match="start"):
        coverage_chart(ledger, trajectory=PAIR, start=1000 * MARCH, end="2023-03-02", source=SOURCE)
