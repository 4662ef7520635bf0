"""The forms and options that every table has, through the command, in a pipe and on a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.terminal import on_a_terminal
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.statistics import spread
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

from .conftest import Rail, refused

START, ROWS = 1_678_406_400, 240
WINDOW = Interval(START, START + 60 * ROWS)
KEYS = [f"{symbol}:X.spot:Y.spot" for symbol in ("A_USD", "B_USD", "C_USD", "D_USD")]
SHORT = "E_USD:X.spot:Y.spot"
COMMANDS = ("status", "stats spread", "stats funding", "stats events", "symbols")
IN_JSON = [(command, "json") for command in COMMANDS]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four spreads of four hours of minutes, each wider than the one before, and one of one row."""
    store = Store(tmp_path_factory.mktemp("tables") / "rail.duckdb")
    writer = StoreWriter(store)
    writer.bind(Source("simulated", "tables"))
    batch, draw = Batch(), np.random.default_rng(1)
    for place, key in enumerate([*KEYS, SHORT]):
        n = 1 if key == SHORT else ROWS
        log = (1 + place) * 1e-4 * draw.normal(size=n)
        rows = pl.DataFrame({"ts": START + 60 * np.arange(n), "sell_price": 100 * np.exp(log)})
        rows = rows.with_columns(
            buy_price=100.0, spread_pct=pl.lit(None, pl.Float64), extra=pl.lit(None, pl.String)
        )
        batch.add(Trajectory.parse(key), rows, WINDOW, Edge(WINDOW.end + 900, step_s=60))
    writer.commit(writer.start_load(LoadOrigin("http://h", WINDOW.end + 900, None, "0")), batch)
    return store.path


@pytest.fixture
def stats(rail: Rail, kept: Path) -> Rail:
    """Run `rail stats spread` over the store."""

    def run(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
        return rail("stats", "spread", *arguments, store=str(kept), **settings)

    return run


def keys_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return re.findall(r"[A-E]_USD:X\.spot:Y\.spot", done.stdout)


def test_a_key_of_every_row_is_a_line_above_the_table_and_no_column(rail: Rail, kept: Path) -> None:
    done = rail("stats", "hour-of-week", KEYS[0], store=str(kept))
    heading, key, columns, *_ = done.stdout.splitlines()
    assert heading.startswith("By hour of the week, over [")
    assert (key, columns.split()[:2]) == (f"trajectory: {KEYS[0]}", ["weekday", "hour,"])
    assert keys_of(done) == KEYS[:1]


def test_each_trajectory_is_a_row_the_widest_first(stats: Rail) -> None:
    done = stats()
    lines = done.stdout.splitlines()
    assert sorted(keys_of(done)) == [*KEYS, SHORT]
    table = [line for line in lines if "_USD:" in line]
    deviations = [float(line.split()[1]) for line in table if "–" not in line.split()[1]]
    assert deviations == sorted(deviations, reverse=True)
    assert any(line.endswith(") too few observations for this statistic") for line in lines)
    assert done.stderr == ""


def test_json_csv_and_parquet_hold_the_same_in_full_with_source_and_window(
    stats: Rail, kept: Path, workdir: Path
) -> None:
    sort = ("--sort", "trajectory")
    objects = [json.loads(line) for line in stats("--format", "json", *sort).stdout.splitlines()]
    read = list(csv.DictReader(io.StringIO(stats("--format", "csv", *sort).stdout)))
    stats("--output", "out.parquet", *sort)
    parquet = pl.read_parquet(workdir / "out.parquet")
    rows = Store(kept).scan(Family.SPREAD, WINDOW).collect()
    steps = dict.fromkeys(rows["trajectory"].unique(), 60)
    measured = spread.summary(rows, *WINDOW, step_s=steps).to_dicts()
    source = Store(kept).source.label
    wanted = [{"source": source, **row} for row in measured]
    assert objects == wanted
    assert parquet.to_dicts() == wanted
    texts = [{k: "" if v is None else str(v) for k, v in row.items()} for row in wanted]
    flags = {"True": "true", "False": "false"}
    assert read == [{k: flags.get(v, v) for k, v in row.items()} for row in texts]
    assert (objects[0]["window_start"], objects[0]["window_end"]) == WINDOW


def test_markdown_is_a_table_of_code_and_numbers(stats: Rail) -> None:
    lines = stats("--format", "markdown").stdout.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert lines[0].endswith("· `SIMULATED market, tables`")
    assert len(table) == 2 + 5
    assert len({line.count("|") for line in table}) == 1
    assert all(re.match(r"\| `[A-E]_USD:X\.spot:Y\.spot` \|", line) for line in table[2:])


@pytest.mark.parametrize("order", ["spread_std_log_bps", "-spread_std_log_bps"])
def test_a_null_is_sorted_last_either_way(stats: Rail, order: str) -> None:
    rows = [
        json.loads(line) for line in stats("--format", "json", "--sort", order).stdout.splitlines()
    ]
    values = [row["spread_std_log_bps"] for row in rows]
    known = [value for value in values if value is not None]
    assert 0 < len(known) < len(values)
    assert values[: len(known)] == sorted(known, reverse=order.startswith("-"))


def test_rows_that_are_not_shown_are_counted(stats: Rail) -> None:
    asked = ("--where", "n > 100", "--top", "3", "--sort", "-n")
    words = "3 of 5 rows shown: --where leaves out 1, --top 3 leaves out 1"
    assert words in stats(*asked).stdout.splitlines()
    in_json = stats(*asked, "--format", "json")
    assert len(in_json.stdout.splitlines()) == 3
    assert in_json.stderr == f"{words}\n"
    none = stats("--where", "n > 1000")
    assert "0 of 5 rows shown: --where leaves out 5" in none.stdout
    assert none.returncode == 0


OPTIONS = [
    (("--where", "no_column > 1"), "--where: 'no_column' is not allowed"),
    (("--output", "here.csv"), "it is there already"),
]
MORE_OPTIONS = [
    (("--where", "half_life > 1"), "nearest: half_life_s"),
    (("--sort", "-coverag"), "--sort: 'coverag' is not allowed"),
    (("--format", "parquet"), "allowed: with --output FILE"),
    (("--output", "nowhere/new.csv"), "there is no folder nowhere"),
    (("--output", "new.xlsx"), "a name that ends in .txt, .md, .json, .csv, .parquet"),
    (("--output", "/dev/tty", "--format", "parquet"), "a new file"),
]


@pytest.mark.parametrize(
    ("command", "option", "said"),
    [(command, *each) for command in COMMANDS for each in OPTIONS]
    + [("stats spread", *each) for each in MORE_OPTIONS],
)
def test_options_are_checked_before_a_store_is_opened_or_a_service_asked(
    rail: Rail, workdir: Path, command: str, option: tuple[str, ...], said: str
) -> None:
    (workdir / "here.csv").write_text("mine")
    nowhere = {"store": "no.duckdb", "base_url": "http://127.0.0.1:9"}
    assert said in refused(rail(*command.split(), *option, **nowhere))
    assert (workdir / "here.csv").read_text() == "mine"


@pytest.mark.parametrize("option", [("--top", "0"), ("--format", "xml")])
def test_what_typer_can_check_ends_with_2(stats: Rail, option: tuple[str, ...]) -> None:
    assert stats(*option).returncode == 2


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("command", "form"), [*IN_JSON, ("symbols", "csv"), ("symbols", "markdown")]
)
def test_every_table_names_its_source(rail: Rail, service: str, command: str, form: str) -> None:
    done = rail(*command.split(), "--format", form, base_url=service)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED market" in done.stdout


@pytest.mark.parametrize(
    ("form", "ending"), [("json", "json"), ("csv", "csv"), ("markdown", "md"), ("table", "txt")]
)
def test_a_file_holds_what_would_be_printed(
    stats: Rail, workdir: Path, form: str, ending: str
) -> None:
    printed = stats("--format", form, columns=200)
    written = stats("--output", f"out.{ending}")
    assert (workdir / f"out.{ending}").read_text() == printed.stdout
    assert (written.stdout, written.stderr) == ("", f"5 rows in out.{ending}\n")


@pytest.mark.parametrize(
    ("command", "columns"),
    [*((command, 80) for command in COMMANDS if command != "symbols"), ("status", 60)],
)
@pytest.mark.usefixtures("held")
def test_no_line_of_a_pipe_is_longer_than_the_columns_asked_for(
    rail: Rail, command: str, columns: int
) -> None:
    done = rail(*command.split(), columns=columns)
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert max(map(len, lines)) <= columns, "\n".join(lines)


def test_a_wider_terminal_shows_more_columns_and_a_narrower_one_says_so(stats: Rail) -> None:
    heads = {width: stats(columns=width).stdout.splitlines() for width in (60, 80, 240)}
    counts = {}
    for width, lines in heads.items():
        (head,) = (line for line in lines if line.startswith("trajectory"))
        counts[width] = len(re.split(r"\s{2,}", head.strip()))
        assert ("more columns: a wider terminal" in "\n".join(lines)) == (width != 240)
    assert counts[60] < counts[80] < counts[240]
    for lines in heads.values():  # a letter is explained where a column shows it, and only there
        text = "\n".join(lines)
        assert set(re.findall(r"(?:–|1 step) (\([a-z]\))", text)) == set(
            re.findall(r"^\([a-z]\)", text, re.MULTILINE)
        )


@pytest.mark.slow
def test_on_a_terminal_of_80_columns_no_line_is_longer_and_without_colour_none_is_coloured(
    kept: Path,
) -> None:
    asked = ("from toolkit.cli import main; main()", "stats", "spread", "--store", str(kept))
    (code, _, plain), (_, _, coloured) = (
        on_a_terminal(*asked, columns=80, **how) for how in ({"NO_COLOR": "1"}, {})
    )
    assert code == 0, plain
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 80
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
