"""Foreign text on the terminal: no markup, no control character, and commands that run as shown."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.listening import Handler, listening
from tests.once import store_once
from toolkit.store import Store

from ...hostile import store_of, streams, texts
from .conftest import Rail

NOWHERE = "http://127.0.0.1:9"
EVERY = " ".join(texts(NOWHERE).values())
COMMANDS = (
    "status",
    "stats spread",
    "stats funding",
    "stats events",
    "events survival --by symbol --by legs",
    "events league --by symbol",
    "events magnitudes --by symbol --by legs",
    "events together --by symbol --top 30",
    *(
        f"{command} --format {form}"
        for command in ("status", "stats spread", "stats funding", "stats events")
        for form in ("json", "csv", "markdown")
    ),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(store_once(tmp_path_factory, "hostile", lambda path: store_of(path, NOWHERE)))


def is_shown_plainly(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether nothing but printable text and line ends was printed."""
    printed = done.stdout + done.stderr
    return all(c.isprintable() or c == "\n" for c in printed)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_over_a_hostile_store_prints_its_text_and_obeys_none_of_it(
    rail: Rail, store: Store, command: str
) -> None:
    done = rail(*command.split(), store=str(store.path))
    assert (done.returncode, done.stderr) == (0, "")
    assert is_shown_plainly(done)
    assert "[/red]" in done.stdout
    assert not re.search(r"^rail: all is well", done.stdout, re.MULTILINE)


def test_a_refusal_that_names_a_hostile_pair_is_one_line_that_is_obeyed_nowhere(
    rail: Rail, store: Store
) -> None:
    done = rail("events", "payoff", store=str(store.path))
    assert done.returncode == 1
    assert is_shown_plainly(done)
    assert done.stderr.startswith("rail: ")
    assert len(done.stderr.splitlines()) == 1


@contextmanager
def hostile_service(answers: dict[str, object]) -> Iterator[str]:
    """The address of a service that gives the answers, has no prices, and refuses all else."""

    class Hostile(Handler):
        def do_GET(self) -> None:
            known = next((body for name, body in answers.items() if name in self.path), None)
            refusal = {"title": EVERY, "detail": EVERY, "code": EVERY, "status": 402}
            body = json.dumps(known or refusal).encode()
            if "history/price" in self.path:
                self.reply(204)
            else:
                self.reply(200 if known else 402, body, {"Content-Type": "application/json"})

    with listening(Hostile) as address:
        yield address


ANSWERS = {
    "schemas": {"source": {"kind": EVERY, "id": EVERY}, "tools": {}},
    "symbols": {
        "items": [
            {"symbol": text, "venues": [{"exchange": text, "market": "spot"}]}
            for text in (*texts(NOWHERE).values(), f"{EVERY}_USD", "BTC\u202e_USD")
        ]
        + [{"symbol": "BTC_USD", "venues": [{"exchange": "KRAKEN", "market": "spot"}]}],
        "truncated": False,
    },
}


@pytest.mark.slow
def test_a_sync_from_a_hostile_service_tells_its_refusals_and_a_later_status_works(
    rail: Rail,
) -> None:
    with hostile_service(ANSWERS) as address:
        asked = ("sync", "BTC_USD:KRAKEN.spot", "events/splash")
        done = rail(*asked, base_url=address, api_key="demo-pro")
        again = rail(*asked, base_url=address, api_key="demo-pro")
    assert (done.returncode, again.returncode) == (3, 3), done.stderr
    assert is_shown_plainly(done)
    assert "Source not stated, [/red]" in done.stdout
    assert "refused: events/splash" in done.stderr
    status = rail("status")
    assert status.returncode == 0, status.stderr
    assert is_shown_plainly(status)


def test_a_listing_leaves_out_and_counts_what_is_no_symbol(rail: Rail) -> None:
    with hostile_service(ANSWERS) as address:
        done = rail("symbols", base_url=address, api_key="demo-pro")
    assert done.returncode == 0, done.stderr
    assert is_shown_plainly(done)
    assert "1 symbol, 1 leg " in done.stdout
    assert f"(symbol_unreadable, {len(texts(NOWHERE)) + 2} times)" in done.stderr
    assert max(map(len, done.stderr.splitlines())) < 2_000


def test_a_command_that_an_error_names_runs_as_rail_alone(
    rail: Rail, store: Store, workdir: Path
) -> None:
    unknown = str(streams()[1]).replace("KRAKEN", "BYBIT")
    done = rail("stats", "spread", unknown, store=str(store.path))
    assert done.returncode == 1
    (command,) = re.findall(r"(rail sync .*?)` loads it", done.stderr)
    stub = workdir / "rail"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    stub.chmod(0o755)
    path = {"PATH": f"{workdir}:/usr/bin:/bin"}
    subprocess.run(["sh", "-c", command], cwd=workdir, env=path, check=True)
    asked = (workdir / "asked").read_text().splitlines()
    assert asked[:4] == ["sync", unknown, "--store", str(store.path)]
    assert shlex.split(command)[2] == unknown
    assert not (workdir / "PWNED").exists()
