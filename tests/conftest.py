"""What every test gets: no settings from outside, UTC, and the real market data where it is."""

from __future__ import annotations

import atexit
import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

# How fast a machine is, is no property of the code.
settings.register_profile("rail", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", parent=settings.get_profile("rail"), max_examples=6)
settings.register_profile("short", parent=settings.get_profile("rail"), max_examples=10)
settings.load_profile("rail")
SLOW_EXAMPLES = {"toolkit.workspace.doctor.examine"}
SLOW_FOLDERS = {"browser", "journeys", "judges"}

# Threads of numpy wait for each other by spinning, and workers use each core anyway.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test asks a machine outside, and to load the world's authorities takes each client 45 ms.
CERTIFICATES: dict[str, str | None] = {}
for each in ("SSL_CERT_FILE", "SSL_CERT_DIR"):  # workers of these tests begin with what is hidden
    CERTIFICATES[each] = os.environ.setdefault(f"HIDDEN_{each}", os.environ.pop(each, "")) or None
os.environ["SSL_CERT_DIR"] = str(ROOT / "tests")  # where there are none

# What processes share of a key's quota is no test's business but one's own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="rail-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# A shell's background job ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_DATA = (ROOT / os.environ.get("RAIL_REAL_DATA", "../shared/data")).resolve()


def examples(count: int) -> settings:
    """Let a law try so many examples: a tenth or less in CI, by its profile, all in `make laws`."""
    full = settings.get_profile("rail").max_examples
    return settings(max_examples=max(2, count * settings.default.max_examples // full))


def every_example() -> bool:
    """Return whether laws are given all their examples, as `make laws` does."""
    return bool(settings.default is settings.get_profile("rail"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and look at what was collected never again.

    There is no garbage yet, and to look takes a sixth of the time. What modules and tests are made
    of stays to the end. To look through it again and again took tests a tenth of theirs, so that
    what comes later is looked through at every 20,000th object in place of every 700th.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@functools.cache
def folders_of(path: Path) -> frozenset[str]:
    """Return the names of the folders that a file is in, below the repository's."""
    return frozenset(path.relative_to(ROOT).parts[:-1])


@functools.cache
def may_hold(path: Path, word: str) -> bool:
    """Return whether a word is in a file."""
    return word in path.read_text(encoding="utf-8")


def may_be_slow(path: Path) -> bool:
    """Return whether a file may have a slow test: by its folder, its word, or its example."""
    folders = folders_of(path)
    if "toolkit" in folders:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        return any(name.startswith(f"{module}.") for name in SLOW_EXAMPLES)
    return bool((SLOW_FOLDERS | {"dashboard"}) & folders) or may_hold(path, "slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what a run has no test of: to collect all of it takes a worker 12 s of CPU."""
    wanted = config.option.markexpr
    if collection_path.is_dir():
        return (wanted == "not slow" and collection_path.name in SLOW_FOLDERS) or None
    unread = wanted == "slow" and collection_path.suffix == ".py"
    return (unread and not may_be_slow(collection_path)) or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], object]:
    """Look for examples in no file without one: to import and search each takes seconds."""
    found = yield
    return [
        each for each in found if not isinstance(each, DoctestModule) or may_hold(file_path, ">>> ")
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_data)
        folders = folders_of(item.path)
        whole_page = "dashboard" in folders and "page" in getattr(item, "fixturenames", ())
        if SLOW_FOLDERS & folders or whole_page or item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and not may_be_slow(item.path):
            raise pytest.UsageError(f"{item.nodeid}: its file does not have the word slow")


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """What each test would make anew: the empty store of a source, and what a process imports."""
    from tests.empty_store import stores_are_copies  # noqa: PLC0415 - only workers need it
    from tests.forked import commands_are_forked  # noqa: PLC0415 - as above

    with stores_are_copies(), commands_are_forked():
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No RAIL_* variable reaches a test, and local time is UTC."""
    for name in [name for name in os.environ if name.startswith("RAIL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is also the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rail(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `rail` in an empty folder, without a process of its own, on so many columns.

    Settings are given by keyword as RAIL_* variables.
    """

    def run(
        *arguments: str, columns: int = 160, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        from toolkit.cli import main  # noqa: PLC0415 - most tests need none of it
        from toolkit.cli.show import console  # noqa: PLC0415 - as above

        before, sys.argv = sys.argv, ["rail", *map(str, arguments)]
        capsys.readouterr()
        try:
            with monkeypatch.context() as environment:
                console.width = columns
                for name, value in settings.items():
                    environment.setenv(f"RAIL_{name.upper()}", value)
                main()
            code: object = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.argv = before
        assert isinstance(code, int)
        return subprocess.CompletedProcess(sys.argv, code, *capsys.readouterr())

    assert workdir.is_dir()
    return run


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The directory of real market data."""
    if not (REAL_DATA / "prices.parquet").is_file():
        pytest.skip("no real market data here; name its directory in RAIL_REAL_DATA")
    return REAL_DATA
