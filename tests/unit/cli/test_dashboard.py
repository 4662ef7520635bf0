"""The dashboard's port and end, the note that names a running one, and `rail open`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.listening import Handler, listening
from toolkit.cli.dashboard import claim_port, ended_by_signals, note_path, noted, running_address
from toolkit.errors import InputError
from toolkit.market import Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

from .conftest import LOADED, Rail

PRICE, PAIR, FUNDING = LOADED


@contextlib.contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The address of a server that answers everything with this."""

    class Alike(Handler):
        def do_GET(self) -> None:
            self.reply(200, body)

    with listening(Alike) as address:
        yield address


def test_a_dashboard_is_found_for_as_long_as_it_runs(workdir: Path) -> None:
    store = workdir / "rail.duckdb"
    assert running_address(store) is None
    with answering(b"ok") as address, noted(store, address):
        assert running_address(store) == address
    assert running_address(store) is None
    assert not note_path(store).exists()


def test_a_note_of_what_is_gone_or_is_no_dashboard_counts_for_nothing(workdir: Path) -> None:
    store = workdir / "rail.duckdb"
    with answering(b"ok") as address:
        for text in ("", "x", f"{2**22 + 1} {address}\n", f"{os.getpid()} http://evil/path:1\n"):
            note_path(store).write_text(text)
            assert running_address(store) is None
    with answering(b"no") as other, noted(store, other):
        assert running_address(store) is None
    with noted(store, address):  # which has ended
        assert running_address(store) is None


def test_of_two_dashboards_the_one_that_began_last_is_named(workdir: Path) -> None:
    store = workdir / "rail.duckdb"
    with answering(b"ok") as first, answering(b"ok") as second:
        with noted(store, first), noted(store, second):
            assert running_address(store) == second
        assert running_address(store) is None


def test_where_no_note_can_be_written_the_dashboard_runs_without(workdir: Path) -> None:
    with noted(workdir / "no_folder" / "rail.duckdb", "http://127.0.0.1:1"):
        pass
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "page"),
    [
        (PRICE.key, "trajectory?trajectory=BTC_USDT%3AAURORA.spot"),
        (PAIR.key, "trajectory?trajectory=BTC_USDT%3AAURORA.spot%3ACORONA.futures"),
        (FUNDING.key, "funding?trajectory=funding%2FBTC_USDT%3AAURORA.futures%3ACORONA.futures"),
        ("events/splash", "events?family=splash"),
    ],
)
def test_open_prints_the_address_of_a_streams_page(
    rail: Rail, held: Store, key: str, page: str
) -> None:
    with answering(b"ok") as address, noted(held.path, address):
        done = rail("open", key, "--no-browser")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{address}/{page}\n"


def test_open_shows_a_pair_as_it_is_held_and_says_so(rail: Rail, held: Store) -> None:
    with answering(b"ok") as address, noted(held.path, address):
        done = rail("open", "BTC_USDT:CORONA.futures:AURORA.spot", "--no-browser")
    assert "AURORA.spot%3ACORONA.futures" in done.stdout
    assert f"is held as {PAIR.key}: the page shows that" in done.stderr


def test_open_shows_any_two_prices_that_are_held(rail: Rail, held_copy: Store) -> None:
    other = Trajectory.parse("BTC_USDT:BOREAS.spot")
    rows = held_copy.series(PRICE)
    writer, batch = StoreWriter(held_copy), Batch()
    window = (rows["ts"][0], rows["ts"][-1] + 1)
    rows = rows.drop("trajectory").with_columns(extra=pl.lit(None, pl.String))
    batch.add(other, rows, window, Edge(window[1], step_s=60))
    writer.commit(writer.start_load(LoadOrigin("http://127.0.0.1", 0, None, "0")), batch)
    with answering(b"ok") as address, noted(held_copy.path, address):
        done = rail("open", f"pair/{PRICE}/{other}", "--no-browser")
    page = "trajectory?trajectory=pair%2FBTC_USDT%3AAURORA.spot%2FBTC_USDT%3ABOREAS.spot"
    assert (done.stdout, done.stderr) == (f"{address}/{page}\n", "")


def test_a_browser_is_sent_to_the_page(
    rail: Rail, held: Store, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = workdir / "browser"
    stub.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {workdir}/asked\n')
    stub.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{stub} %s")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # so that it reads the variable again
    with answering(b"ok") as address, noted(held.path, address):
        assert rail("open", "events/spread").returncode == 0
    assert (workdir / "asked").read_text() == f"{address}/events?family=spread"


def test_a_port_is_kept_until_it_is_let_go_and_the_next_free_one_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with claim_port("127.0.0.1", port) as claimed, claim_port("127.0.0.1", port) as another:
            found = claimed.getsockname()[1]
            assert port < found < another.getsockname()[1] <= port + 19


def test_a_port_is_refused_where_neither_it_nor_one_of_those_after_it_is_free() -> None:
    with contextlib.ExitStack() as taken:
        sockets = [taken.enter_context(claim_port("127.0.0.1", 20_000)) for _ in range(20)]
        first = sockets[0].getsockname()[1]
        with pytest.raises(InputError, match=f"{first} is not allowed; allowed: a free port"):
            claim_port("127.0.0.1", first)


def a_library_that_is_interrupted() -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("interrupted system call") from None


def test_a_block_that_a_ctrl_c_ended_ends_as_such_whatever_a_library_made_of_it() -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        a_library_that_is_interrupted()
    with pytest.raises(RuntimeError, match="by itself"), ended_by_signals():
        raise RuntimeError("by itself")
