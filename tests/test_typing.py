"""What a user's type checker sees of the wheel: no Any of ours, and every misspelt name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.once import distributions

ROOT = Path(__file__).parents[1]
KNOWN = ROOT / ".mypy_cache"
OF_THE_SCRIPT = """
[[tool.mypy.overrides]]
module = "script"
disallow_any_expr = true
"""
SCRIPT = ROOT / "tests" / "typed_script.py"
WRONG = """
import toolkit as tk
rail = tk.open()
tk.opne()  # attr-defined
tk.statistics.spread.sumary  # attr-defined
rail.pricess("BTC_USDT:AURORA.spot")  # attr-defined
rail.prices("BTC_USDT:AURORA.spot").plot(theem="dark")  # call-arg
rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot").episodes(10, leav_bps=3)  # call-arg
rail.funding("BTC_USDT:AURORA.futures:BOREAS.futures").carry(min_coverag=0.5)  # call-arg
rail.events("spread").plot(limit="all")  # arg-type
rail.store.commit(1)  # attr-defined
rail.client.history("BTC_USDT:AURORA.spot", object())  # arg-type
"""
SHOWN = """
import toolkit as tk
from toolkit.commands import rail as command
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown
text = tk.open().store.source.id
st.caption(text)  # arg-type
st.caption(f"Of {text}")  # arg-type
st.caption(Markdown("Of ") + text)  # arg-type
st.caption(Markdown("Of {}").format(text))
st.columns(2)[0].subheader(text)  # arg-type
st.button(text)  # arg-type
st.code(f"rail sync {text}", language="bash")  # call-overload
st.code(command("sync", text), language="bash")
"""
Check = Callable[[str], dict[int, str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist as the build backend makes them."""
    return distributions(tmp_path_factory)


@pytest.fixture(scope="module")
def check(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Type-checks a script beside the wheel in an environment of its own: errors by line.

    What the toolkit requires is that of the environment which runs the tests. What `make lint` came
    to know of it is taken over, under the same settings, where that ran before.
    """
    folder = tmp_path_factory.mktemp("user")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "required.pth").write_text(sysconfig.get_path("purelib"))
    if KNOWN.is_dir():
        shutil.copytree(KNOWN, folder / KNOWN.name)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(settings + OF_THE_SCRIPT, encoding="utf-8")

    def checked(script: str) -> dict[int, str]:
        (folder / "script.py").write_text(script)
        python = environment / "bin" / "python"
        mypy = [sys.executable, "-m", "mypy", "--python-executable", str(python)]
        told = subprocess.run(
            [*mypy, "script.py"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert told.returncode in (0, 1), told.stdout + told.stderr
        errors = re.findall(r"^script\.py:(\d+): error: (.*)$", told.stdout, re.MULTILINE)
        return {int(line): error for line, error in errors}

    return checked


def test_wheel_and_sdist_say_that_the_package_is_typed(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        assert "toolkit/py.typed" in archive.namelist()
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("/toolkit/py.typed") for name in archive.getnames())


def test_nothing_that_a_user_touches_is_any(check: Check) -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    untyped = {n for n, line in enumerate(script.splitlines(), 1) if "  # untyped: " in line}
    errors = check(script)
    assert {n: error for n, error in errors.items() if n not in untyped} == {}
    assert set(errors) == untyped


@pytest.mark.parametrize("script", [WRONG, SHOWN], ids=["misspelt", "shown as it came"])
def test_what_is_wrong_is_found(check: Check, script: str) -> None:
    wanted = {
        n: line.rpartition("# ")[2]
        for n, line in enumerate(script.splitlines(), 1)
        if "  # " in line
    }
    errors = check(script)
    assert {n: error.rpartition("[")[2].rstrip("]") for n, error in errors.items()} == wanted
