"""The command line as a person runs it: real processes, a real service, a real file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import miniature
from tests.once import made_once

RAIL = Path(sys.executable).with_name("rail")


@contextmanager
def serving(*arguments: str, program: Sequence[str | Path] = (RAIL, "serve")) -> Iterator[str]:
    """A `rail serve`, or another ``program``, in a process of its own; gives its address."""
    process = subprocess.Popen(
        [*program, "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if found := re.search(r"listening at (http://\S+);", line):
                yield found[1]
                break
        else:
            pytest.fail(f"the service did not start: {said}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        assert process.wait(120) == 0


@pytest.fixture
def rail(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `rail` in an empty folder; settings are given by keyword as RAIL_* variables."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {f"RAIL_{k.upper()}": v for k, v in settings.items()}
        return subprocess.run(
            [RAIL, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
            timeout=900,
        )

    return run


@pytest.fixture(scope="session")
def miniature_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Three days of a small SIMULATED market, the clock at their end."""
    market = miniature.write(tmp_path_factory.mktemp("miniature") / "prices.parquet")
    with serving("--replay", str(market), "--now", "2026-11-04") as base_url:
        yield base_url


@pytest.fixture(scope="module")
def day_of_market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder far from the checkout with ``rail.duckdb``: a day of a SIMULATED market."""
    streams = (
        *("BTC_USDT:AURORA.spot", "BTC_USDT:AURORA.spot:CORONA.futures"),
        "funding/BTC_USDT:AURORA.futures:CORONA.futures",
        *("events/spread", "events/splash", "events/funding"),
        *("snapshot/spread", "snapshot/funding"),
    )

    def load(folder: Path) -> None:
        with serving("--seed", "7", "--now", "2026-11-20") as base_url:
            window = ("--start", "2026-11-19", "--end", "2026-11-20", "--base-url", base_url)
            subprocess.run([RAIL, "sync", *streams, *window], cwd=folder, check=True)

    made = made_once(tmp_path_factory, "day-of-market", load)
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("elsewhere"), dirs_exist_ok=True))
