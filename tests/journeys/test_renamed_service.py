"""A service that calls fields, units and tools by other names is met by a profile file alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import miniature
from tests.forked import PYTHON

from .conftest import serving

Rail = Callable[..., subprocess.CompletedProcess[str]]
KEYS = ("BTC_USDT:AURORA.spot:CORONA.futures", "ETH_USDT:AURORA.spot:BOREAS.spot")
DAY = ("--start", "2026-11-02", "--end", "2026-11-03")

RENAMED = """
[rest.renamed_fields]
ts = "moment"
buy_price = "bid_px"
sell_price = "offered"
spread_pct = "gap_bps"

[rest.units]
ts = "ms"
spread_pct = "bps"

[rest.renamed_tools]
"data.get_spread_history" = "rail.spreads"
"data.get_schemas" = "rail.describe"
"""

PROFILE = """
[history.spread]
fields.ts = { wire = "moment" }
fields.buy_price = { wire = "bid_px" }
fields.sell_price = { wire = "offered" }
fields.spread_pct = { wire = "gap_bps" }
"""


@pytest.fixture(scope="module")
def renamed_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The miniature market of `miniature_service`, in other words."""
    folder = tmp_path_factory.mktemp("renamed")
    (switches := folder / "renamed.toml").write_text(RENAMED)
    market = ("--replay", str(miniature.write(folder / "prices.parquet")), "--now", "2026-11-04")
    program = (PYTHON, "-m", "tests.adversary", str(switches))
    with serving(*market, program=program) as base_url:
        yield base_url


def statistics(rail: Rail, store: str, base_url: str, **settings: str) -> str:
    """What `rail stats spread` says of a day, loaded from a service."""
    loaded = rail("sync", *KEYS, *DAY, "--store", store, base_url=base_url, **settings)
    assert loaded.returncode == 0, loaded.stderr
    said = rail("stats", "spread", *KEYS, "--store", store)
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_a_renamed_service_gives_the_same_statistics_through_a_profile_alone(
    rail: Rail, miniature_service: str, renamed_service: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE)
    agreed = statistics(rail, "agreed.duckdb", miniature_service)
    renamed = statistics(rail, "renamed.duckdb", renamed_service, profile="mine.toml")
    assert all(key in agreed for key in KEYS)
    assert renamed.replace("renamed.duckdb", "agreed.duckdb") == agreed


def test_without_a_profile_the_renamed_service_is_refused_in_one_line(
    rail: Rail, renamed_service: str
) -> None:
    done = rail("sync", KEYS[0], *DAY, base_url=renamed_service)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "without a usable time" in done.stderr


def test_the_doctors_draft_has_what_rows_prove_and_judged_by_hand_loads_the_renamed_service(
    rail: Rail, miniature_service: str, renamed_service: str, tmp_path: Path
) -> None:
    met = rail("doctor", "--profile-out", "draft.toml", base_url=renamed_service)
    assert met.returncode == 3
    assert "Partly usable" in met.stdout
    draft = (tmp_path / "draft.toml").read_text()
    spread = draft.partition("[history.spread]")[2].partition("\n[")[0]
    for column, wire in (("buy_price", "bid_px"), ("sell_price", "offered")):
        assert f'\nfields.{column} = {{ wire = "{wire}", unit = "quote" }}' in spread
    assert '\nfields.spread_pct = { wire = "gap_bps", unit = "bps" }' in spread
    judged = re.sub(r"(?m)^# (?=fields\.|\w+ = )", "", draft)
    assert '"?"' not in re.sub("(?m)^#.*", "", judged)
    (tmp_path / "judged.toml").write_text(judged)
    again = rail("doctor", base_url=renamed_service, profile="judged.toml")
    assert again.returncode == 0, again.stdout
    assert "Usable: data can be loaded" in again.stdout
    agreed = statistics(rail, "agreed.duckdb", miniature_service)
    renamed = statistics(rail, "renamed.duckdb", renamed_service, profile="judged.toml")
    assert renamed.replace("renamed.duckdb", "agreed.duckdb") == agreed
