"""What a service declares and sends, over real sockets: signs, its own spread, rows that tie."""

from __future__ import annotations

import json
import math
import re
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests import miniature
from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.analyses import find
from toolkit.cli.output import Format, TableOptions, show
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, sync
from toolkit.market import Family, Trajectory
from toolkit.service import Clock, Config, Simulated
from toolkit.statistics import spread
from toolkit.statistics.funding.differentials import service_differential, without_rates
from toolkit.store import Store
from toolkit.workspace.answers import SeriesAnswer
from toolkit.workspace.selection import Passes, Selection

from .conftest import client_of

END = miniature.END
HOUR = Interval(END - 3_600, END)
PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
FUNDING = Trajectory.parse("BTC_USDT:AURORA.futures:CORONA.futures", Family.FUNDING)


def serving(source: object = None, **switches: object) -> AbstractContextManager[Client]:
    """A client of the miniature market (or another source) with switches."""
    application = adverse(Adversary(rest=RestSwitches(**switches)))
    settings = {"port": 0, "clock": Clock(fixed_at=END), "quota": 10**6, "application": application}
    return client_of(Config(source or miniature.source(), **settings))


def load(store: Store, *of: Trajectory, **switches: object) -> LoadResult:
    with serving(**switches) as client:
        return sync(client, store, of or [SPREAD], HOUR)


def found(result: LoadResult) -> set[str]:
    return {finding.kind for finding, _ in result.findings} - {"tool_missing"}


@pytest.mark.slow
def test_a_declared_sign_that_is_reversed_is_turned_at_load_with_a_finding(
    tmp_path: Path, store: Store
) -> None:
    plain = Store(tmp_path / "plain.duckdb")
    assert found(load(plain)) == set()
    result = load(store, reversed_fields=("spread_pct",))
    assert found(result) == {"sign_reversed"}
    assert store.series(SPREAD).equals(plain.series(SPREAD))
    assert store.series(SPREAD)["spread_pct"].mean() > 0.0  # type: ignore[operator]  # Float64


def test_a_sign_that_is_reversed_without_a_word_is_found_beside_the_legs(store: Store) -> None:
    result = load(store, reversed_fields=("spread_pct",), undeclared=True)
    assert found(result) == {"sign_disagrees"}
    assert json.loads(store.loads()["finding"][0])[0]["kind"] == "sign_disagrees"


def test_a_unit_that_is_not_declared_is_found_beside_the_legs(store: Store) -> None:
    result = load(store, units={"spread_pct": "bps"}, undeclared=True)
    assert found(result) == {"value_disagrees"}


def test_reversed_rates_are_turned_and_agree_with_the_differential(tmp_path: Path) -> None:
    stores = [Store(tmp_path / name) for name in ("plain.duckdb", "turned.duckdb")]
    window = Interval(END - 2 * 86_400, END)
    names = ("buy_rate", "sell_rate", "differential_pct_8h")
    for store, switches in zip(stores, ({}, {"reversed_fields": names}), strict=True):
        with serving(Simulated(7), **switches) as client:
            result = sync(client, store, [FUNDING], window)
        assert found(result) == ({"sign_reversed"} if switches else set())
    plain, turned = (store.series(FUNDING) for store in stores)
    assert plain.height > 0
    assert turned.equals(plain)


@pytest.mark.slow
def test_where_only_the_services_spread_is_sent_statistics_run_on_it_and_say_so(
    tmp_path: Path, store: Store
) -> None:
    whole = Store(tmp_path / "whole.duckdb")
    load(whole)
    load(store, missing_fields=("buy_price", "sell_price"))
    rows, wanted = (spread.with_spread(each.series(SPREAD)) for each in (store, whole))
    assert rows["buy_price"].null_count() == rows.height > 0
    assert rows["spread_basis"].unique().to_list() == ["service"]
    pairs = zip(rows["spread_log_bps"], wanted["spread_log_bps"], strict=True)
    assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in pairs)
    summary = spread.summary(rows, *HOUR).row(0, named=True)
    assert (summary["n"], summary["spread_basis"]) == (rows.height, "service")
    assert spread.summary(wanted, *HOUR)["spread_basis"].to_list() == ["legs"]


def test_where_only_the_services_differential_is_sent_its_mean_is_a_figure(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    window = Interval(END - 2 * 86_400, END)
    legs = [f"{leg}_{of}" for leg in ("buy", "sell") for of in ("rate", "interval_hours")]
    with serving(Simulated(7), missing_fields=tuple(legs)) as client:
        sync(client, store, [FUNDING], window)
    rows = store.series(FUNDING)
    assert without_rates(rows).height == rows.height > 0
    row = service_differential(rows, *window).row(0, named=True)
    assert row["differential_basis"] == "service"
    mean = row["differential_pct_8h_time_weighted_mean"]
    assert row["differential_apr_pct"] == pytest.approx(1095 * mean)
    assert rows["differential_pct_8h"].min() <= mean <= rows["differential_pct_8h"].max()
    asked = Selection.of(Passes.of(store), Family.FUNDING, [FUNDING.key], *window)
    show(TableOptions(Format.TABLE), SeriesAnswer.of(find("funding.summary"), asked).sheet)
    assert re.search(r"computed from +service", capsys.readouterr().out)


@pytest.mark.parametrize("field", ["seq", None])
def test_rows_that_share_a_time_are_all_held_and_none_is_a_revision(
    store: Store, field: str | None
) -> None:
    switches = {"tie_s": 180, "tie_field": field, "page_cap": 7}
    for new in (60, 0):
        result = load(store, PRICE, **switches)
        assert (result.rows.new, result.rows.revised) == (new, 0)
        assert "ties_allowed" in found(result)
    assert store.catalogue().select("rows", "revisions").row(0) == (60, 0)
    assert store.series(PRICE, ties=True).height == 60
    assert store.series(PRICE).height == 20
    assert store.continuity()["tied_rows"].to_list() == [40]


@pytest.mark.slow
def test_of_rows_that_share_a_time_the_last_by_the_key_counts(tmp_path: Path, store: Store) -> None:
    plain = Store(tmp_path / "plain.duckdb")
    load(plain, PRICE)
    load(store, PRICE, tie_s=180, tie_field="seq", page_cap=7)
    every = plain.series(PRICE)
    assert store.series(PRICE, ties=True)["price"].equals(every["price"])
    assert store.series(PRICE)["price"].equals(every["price"].gather_every(3, offset=2))


def test_rows_that_tie_against_the_declared_key_are_held_with_a_finding(store: Store) -> None:
    for new, kinds in ((60, {"key_broken"}), (0, set())):  # the second one asks nothing
        result = load(store, PRICE, tie_s=180, undeclared=True, page_cap=7)
        assert (result.rows.new, result.rows.revised) == (new, 0)
        assert found(result) == kinds
    assert store.series(PRICE, ties=True).height == 60
