"""What works with the core's dependencies alone, and what is said of an extra that is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = {
    "dashboard": {"argon2", "orjson", "streamlit"},
    "exchanges": {"ccxt"},
    "login": {"authlib"},
    "pandas": {"pandas"},
    "publish": {"obstore"},
    "service": {"anyio", "httpx2", "mcp", "mcp_types", "starlette", "uvicorn"},
}
Run = Callable[..., subprocess.CompletedProcess[str]]


def core_distributions() -> set[str]:
    """The distributions that the toolkit without extras brings, found by what each requires."""
    found: set[str] = set()
    asked = [Requirement("machine-rail-toolkit")]
    while asked:
        wanted = asked.pop()
        try:
            requires = distribution(wanted.name).requires or []
        except PackageNotFoundError:
            continue
        found.add(wanted.name)
        for line in requires:
            needed = Requirement(line)
            extras = [{"extra": extra} for extra in ("", *wanted.extras)]
            if needed.marker and not any(map(needed.marker.evaluate, extras)):
                continue
            if needed.name not in found:
                asked.append(needed)
    return found


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that holds what the core requires, and nothing of the extras."""
    folder = tmp_path_factory.mktemp("slim")
    for name in core_distributions():
        held = distribution(name)
        for top in {file.parts[0] for file in held.files or [] if file.parts[0] != ".."}:
            place = Path(str(held.locate_file(top)))
            if not top.endswith(".pth") and not (folder / top).exists():
                (folder / top).symlink_to(place)
    return folder


@pytest.fixture
def run(slim: Path, workdir: Path) -> Run:
    """Runs Python over those packages alone."""

    def program(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAIL_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(slim)])
        argv = [sys.executable, "-S", "-c", code, *arguments]
        return subprocess.run(
            argv, capture_output=True, text=True, cwd=workdir, env=environment, check=False
        )

    return program


@pytest.mark.slow
def test_the_core_stores_measures_and_charts_without_extras(run: Run) -> None:
    done = run("""
import polars as pl, toolkit as tk
from toolkit.loader import sync
from toolkit.workspace import Workspace, doctor
with Workspace(tk.Client("http://127.0.0.1:9", "key"), tk.Store("rail.duckdb")):
    key = "BTC_USD:COINBASE.spot:KRAKEN.spot"
    frame = pl.DataFrame({"trajectory": [key] * 2, "ts": [0, 60],
                          "buy_price": [1.0, 1.0], "sell_price": [1.0, 1.1]})
    spread = tk.statistics.spread.with_spread(frame)
    chart = tk.charts.spread_chart(
        spread, trajectory=tk.Trajectory.parse(key), start=0, end=120,
        source=tk.Source("simulated", "none"))
    print(spread.height, len(chart.to_json()) > 1000)
""")
    assert (done.stdout, done.returncode) == ("2 True\n", 0), done.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["serve"], "service"),
        (["serve", "--exchanges", "okx"], "service"),
        (["mcp"], "service"),
        (["webhook", "--secret-env", "HOME"], "service"),
        (["demo", "--once"], "service"),
        (["demo"], "dashboard"),
        (["app"], "dashboard"),
    ],
)
@pytest.mark.slow
def test_a_command_without_its_extra_names_it_in_one_line(
    run: Run, arguments: list[str], extra: str
) -> None:
    done = run("from toolkit.cli import main; main()", *arguments)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f'pip install "machine-rail-toolkit[{extra}]"' in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import toolkit; toolkit.open().symbols()",
        "import toolkit.client.mcp",
        "from toolkit.loader.webhook.webhooks import webhook_app",
    ],
)
@pytest.mark.slow
def test_an_import_without_its_extra_is_an_error_of_ours(run: Run, code: str) -> None:
    done = run(code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("toolkit.errors.MissingExtraError: ")
    assert last.endswith('pip install "machine-rail-toolkit[service]" installs it')


@pytest.mark.slow
def test_the_doctor_skips_mcp_where_its_extra_is_missing(run: Run) -> None:
    done = run("""
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.workspace import Settings
from toolkit.workspace.doctor import mcp_check
check = mcp_check(Settings("http://127.0.0.1:9", "key"), BUILT_IN, ProfileDraft())
print(check.state, check.says)
""")
    assert done.stdout.startswith("not asked "), done.stderr
    assert 'pip install "machine-rail-toolkit[service]"' in done.stdout
