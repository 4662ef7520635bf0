"""`rail store` and `rail import`: published, made again, and refused in one line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.object_store import serving_objects
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.store.file.maintenance import verify

from .conftest import Rail, refused

KEY = "BTC_USDT:AURORA.spot:CORONA.futures"


@pytest.mark.slow
def test_a_store_is_published_read_and_made_again(
    rail: Rail, held: Store, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rail("store", "publish", "archive")
    assert first.returncode == 0, first.stderr
    files = len(list((workdir / "archive").glob("*/*.parquet")))
    size = sum(path.stat().st_size for path in (workdir / "archive").glob("**/*.*"))
    head, uploaded, kept, address = first.stdout.splitlines()
    assert head.startswith("archive: ")
    assert uploaded == f"uploaded {files} files, {size:,} bytes"
    assert kept == "kept 0 files, 0 bytes"
    again = rail("store", "publish", "archive", "--keep", "30d").stdout.splitlines()
    assert again[1:] == [
        "uploaded 0 files, 0 bytes",
        f"kept {files} files, {size:,} bytes",
        "removed 0 files",
        address,
    ]
    listed = rail("store", "publications", "archive").stdout.splitlines()
    assert [line.strip() for line in listed][1:] == [address]
    monkeypatch.setenv("XDG_CACHE_HOME", str(workdir / "cache"))
    here = rail("stats", "spread", KEY, "--format", "json").stdout
    assert rail("stats", "spread", KEY, "--format", "json", "--store", "archive").stdout == here
    for command in (["stats", "spread"], ["stats", "hour-of-week"], ["screen"]):
        asked = [*command, "--format", "json", "--store", "archive"]
        done = rail(*asked, "--cluster", "1")
        assert KEY in done.stdout, done.stderr
        assert done.stdout == rail(*asked).stdout
    line = refused(rail("screen", "--cluster", "1"))
    assert "rail store publish archive" in line
    assert KEY in rail("status", "--store", address).stdout
    made = rail("import", "archive/manifest.json", "--store", "again.duckdb")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("again.duckdb: ")
    assert Store("again.duckdb").catalogue().equals(held.catalogue())
    assert "is there already" in refused(rail("import", "archive", "--store", "again.duckdb"))


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_an_object_store_is_published_to_read_and_imported_by_its_address(
    rail: Rail, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "s3://bucket/rail"
    monkeypatch.setenv("XDG_CACHE_HOME", str(workdir / "cache"))
    with serving_objects() as objects:
        for name, value in objects.environment.items():
            monkeypatch.setenv(name, value)
        done = rail("store", "publish", where)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{where}: ")
        assert "uploaded 0 files" in rail("store", "publish", where).stdout
        done = rail("import", f"{where}/manifest.json", "--store", "again.duckdb")
        assert (done.returncode, done.stderr) == (0, "")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOTHER")
        line = refused(rail("store", "publish", where))
    assert "check the credentials" in line
    assert "not-the-secret" not in line
    published, again = Store(Path("rail.duckdb")), Store(workdir / "again.duckdb")
    assert again.catalogue().equals(published.catalogue())


@pytest.mark.slow
def test_a_store_is_checked_rewritten_and_copied(rail: Rail, workdir: Path) -> None:
    held = Store("rail.duckdb")
    StoreWriter(held).bind(Source("replay", "example"))
    assert rail("store", "verify").stdout == "rail.duckdb is whole\n"
    assert rail("store", "compact").stdout.startswith("rail.duckdb: 0 rows, ")
    assert rail("store", "backup", "copy.duckdb").stdout.startswith("copy.duckdb: ")
    assert Store("copy.duckdb").source == held.source
    assert "is there already" in refused(rail("store", "backup", "copy.duckdb"))
    with StoreWriter(held).writing() as connection:
        connection.execute("INSERT INTO stream VALUES (1, 'price', 'no key', 0, 0, NULL, NULL, 0)")
    done = rail("store", "verify")
    assert done.stdout == "stream: 'no key' is not a key of the kind 'price'\n"
    assert "has 1 fault" in refused(done)
    assert sorted(path.name for path in workdir.iterdir()) == ["copy.duckdb", "rail.duckdb"]


@pytest.mark.slow
def test_rows_of_ones_own_are_kept_in_a_store_that_takes_nothing_else(
    rail: Rail, held: Store, workdir: Path
) -> None:
    start = 1_678_406_400
    times = [1_000 * (start + 60 * k) for k in range(1, 11)]
    rows = pl.DataFrame({"time": times, "close": [100.0 + k for k in range(10)]})
    rows.write_csv(workdir / "vendor.csv")
    own = ("import", "vendor.csv", "--stream", "BTC_USD:VENDOR.spot")
    own += ("--map", "ts=time,price=close", "--unit", "ms", "--stamped", "end")
    done = rail(*own, "--store", "mine.duckdb")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mine.duckdb: 10 rows new, 0 revised, 0 known, of BTC_USD:VENDOR")
    assert "0 rows new, 0 revised, 10 known" in rail(*own, "--store", "mine.duckdb").stdout
    mine = Store("mine.duckdb")
    assert mine.source == Source("own", "mine")
    assert mine.series("BTC_USD:VENDOR.spot")["ts"].to_list() == [t // 1_000 - 60 for t in times]
    assert verify(mine) == []
    assert mine.coverage("BTC_USD:VENDOR.spot", (start, start + 600))["state"].to_list() == ["held"]
    assert held.source.label in refused(rail(*own, "--store", str(held.path)))


def test_a_file_is_opened_by_a_layout_or_by_places_and_its_first_and_last_time_are_told(
    rail: Rail, workdir: Path
) -> None:
    bars = [f"{1_704_067_200_000 + 60_000 * k},1,1,1,{k + 1},2,0,3,1,1,1,0" for k in range(3)]
    (workdir / "bars.csv").write_text("\n".join([*bars, bars[-1]]))
    own = ("import", "bars.csv", "--stream", "BTC_USDT:BINANCE.spot", "--store", "own.duckdb")
    told = rail(*own, "--as", "binance-klines").stdout
    assert "first row 2024-01-01 00:00 UTC, last 2024-01-01 00:02 UTC\n" in told
    assert "1 row left out that repeats another\n" in told
    assert "3 rows new" in told
    assert "3 revised" in rail(*own, "--columns", "1,5", "--unit", "ms").stdout
    assert "without --map" in refused(rail(*own, "--columns", "1,5", "--map", "ts=1"))
    assert "--columns 1,5" in refused(rail(*own))
    assert "these are milliseconds" in refused(rail(*own, "--columns", "1,5"))


def test_a_spread_of_two_prices_of_ones_own_is_asked_for_as_a_pair(
    rail: Rail, workdir: Path
) -> None:
    (workdir / "own.csv").write_text("ts,price\n1678406400,100\n1678406460,101\n")
    for leg in ("X.spot", "Y.spot"):
        asked = ("--stream", f"A_B:{leg}", "--step", "1m", "--store", "own.duckdb")
        assert rail("import", "own.csv", *asked).returncode == 0
    why = refused(rail("stats", "spread", "A_B:X.spot:Y.spot", "--store", "own.duckdb"))
    assert "`rail stats spread pair/A_B:X.spot/A_B:Y.spot --store own.duckdb`" in why
    nothing = refused(rail("stats", "funding", "--store", "own.duckdb"))
    assert "`rail import` adds rows of your own" in nothing
    assert "rail sync" not in nothing
    joined = "pair/A_B:X.spot/A_B:Y.spot --store own.duckdb` joins two of its prices"
    assert f"`rail screen --pair {joined}" in refused(rail("screen", "--store", "own.duckdb"))
    none = refused(rail("stats", "spread", "--store", "own.duckdb"))
    assert f"`rail stats spread {joined}" in none
    status = rail("status", "--store", "own.duckdb").stdout
    assert "4 rows of 2 trajectories" in status
    assert "service" not in status
    assert "not requested yet" not in status
