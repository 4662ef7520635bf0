"""What is built to be given away: the wheel brings the notebooks, the sdist installs itself."""

from __future__ import annotations

import email
import email.policy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import CERTIFICATES, ROOT
from tests.listening import free_port
from tests.once import distributions

REFUSED = "Packages could not be installed: is the network there?"
NOWHERE = "http://127.0.0.1:9/simple"
UV = shutil.which("uv") or Path(sys.executable).with_name("uv")
"""What `make install` takes too: pip needs 15 s of CPU for what is there already."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist, and the sdist unpacked in it."""
    made, folder = distributions(tmp_path_factory), tmp_path_factory.mktemp("built")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(folder: Path, *argv: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a user does: with the network, and outside the tests' own settings."""
    here = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")} | CERTIFICATES
    environment = {k: v for k, v in (here | settings).items() if v is not None}
    words = list(map(str, argv))
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def make_install(built: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    (unpacked,) = built.glob("*/pyproject.toml")
    return run(unpacked.parent, "make", "install", f"PYTHON={sys.executable}", **settings)


def test_the_wheel_has_the_toolkit_the_command_and_the_notebooks_that_need_no_checkout(
    built: Path,
) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    (entries,) = (packed[name] for name in packed if name.endswith("entry_points.txt"))
    assert b"rail = toolkit.cli:program" in entries
    ours = (path for path in (ROOT / "toolkit").rglob("*") if path.is_file())
    wanted = {str(p.relative_to(ROOT)) for p in ours if "__pycache__" not in p.parts}
    assert wanted - packed.keys() == set()
    kept = {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {
        Path(name).name: text
        for name, text in packed.items()
        if name.startswith("toolkit/notebooks/")
    } == {name: text for name, text in kept.items() if b"tests.adversary" not in text}


@pytest.fixture(scope="module")
def installed(built: Path) -> dict[str, str]:
    """An environment in which the toolkit is what the wheel has, and none of the checkout."""
    (wheel,) = built.glob("*.whl")
    folder = built / "from-the-wheel"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return os.environ | {"PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1"}


def rail_of(installed: dict[str, str], *words: str) -> list[str]:
    """The command line of the wheel's `rail`, which fails where another toolkit is found."""
    start = (
        f"import sys, toolkit; assert toolkit.__file__.startswith({installed['PYTHONPATH']!r}); "
        "from toolkit.cli import main; main()"
    )
    return [sys.executable, "-c", start, *words]


def instructions(container: str) -> list[tuple[str, str]]:
    """The instructions of a container file, each with its words."""
    lines = [line for line in container.splitlines() if line.strip() and line[0] != "#"]
    found = [re.fullmatch(r"([A-Z]+) (.+)", line) for line in lines]
    assert all(found), lines
    return [(each[1], each[2]) for each in found if each]


def test_the_container_file_copies_what_is_there_and_runs_as_no_root() -> None:
    found = instructions((ROOT / "Containerfile").read_text(encoding="utf-8"))
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE"}
    assert {name for name, _ in found} <= known | {"ENTRYPOINT", "CMD"}
    copied = [word for name, words in found if name == "COPY" for word in words.split()[:-1]]
    assert [each for each in copied if not (ROOT / each).exists()] == []
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{each}" for each in copied} <= set(kept)
    last = dict(found)
    assert last["USER"] != "root"
    assert [json.loads(last[name]) for name in ("ENTRYPOINT", "CMD")] == [["rail"], ["follow"]]


def test_what_the_containers_run_runs_from_the_wheel_in_an_empty_folder(
    installed: dict[str, str], miniature_service: str, tmp_path: Path
) -> None:
    environment = installed | {
        "RAIL_BASE_URL": miniature_service,
        "RAIL_API_KEY": "demo-pro",
        "RAIL_STORE": str(tmp_path / "rail.duckdb"),
        "HOME": str(tmp_path),
    }
    watched = '[follow]\nstreams = ["BTC_USDT:AURORA.spot"]\nback = "1d"\n'
    (tmp_path / "rail.toml").write_text(watched)
    for words in (["follow", "--once"], ["status"], ["store", "verify"], ["notebook"]):
        argv = rail_of(installed, *words)
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.ipynb"))) == 1
    argv = rail_of(installed, "app", "--no-browser", "--port", str(free_port()))
    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as app:
        assert app.stdout is not None
        said = next((line for line in app.stdout if "dashboard over" in line), "")
        app.send_signal(signal.SIGTERM)
        app.stdout.read()
    assert "dashboard over" in said


def test_the_text_for_an_index_has_no_picture_and_no_link_to_a_file_beside_it(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("dist-info/METADATA"))
        message = email.message_from_bytes(archive.read(name), policy=email.policy.default)
    text = message.get_payload()
    assert message["Description-Content-Type"].startswith("text/markdown")
    assert text.startswith("# Machine Rail Toolkit\n")
    assert "docs/index.md lists all pages" in text
    places = [*re.findall(r"\]\(([^)]*)\)", text), *re.findall(r"(?:src|srcset|href)=\S+", text)]
    assert [each for each in places if not each.startswith("https://")] == []


def test_what_the_readme_links_to_is_in_the_sdist_beside_it(built: Path) -> None:
    (readme,) = built.glob("*/README.md")
    text = readme.read_text(encoding="utf-8")
    places = re.findall(r"\]\(([^)#]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"", text)
    linked = {link or picture for link, picture in places}
    assert len(linked) > 10
    assert [each for each in linked if not (readme.parent / each).is_file()] == []


def test_without_the_network_an_install_is_one_sentence_and_then_it_works(built: Path) -> None:
    away = {"PIP_INDEX_URL": NOWHERE, "PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": ""}
    away |= {"PIP_RETRIES": "0", "PIP_FIND_LINKS": "", "UV_DEFAULT_INDEX": NOWHERE}
    away |= {"UV_INDEX_URL": NOWHERE, "UV_NO_CACHE": "1", "UV_NO_CONFIG": "1"}
    refused = make_install(built, **away)
    said = [line for line in (refused.stdout + refused.stderr).splitlines() if "make: " not in line]
    assert refused.returncode
    assert len(said) == 1, said
    assert said[0].startswith(REFUSED)
    done = make_install(built)
    if REFUSED in done.stdout:
        pytest.skip("no network here to install from")
    assert done.returncode == 0, done.stderr
    (rail,) = built.glob("*/.venv/bin/rail")
    shown = subprocess.run([rail, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("rail ")


def test_a_fresh_environment_with_the_wheel_alone_runs_the_quickstart_in_order(
    built: Path, tmp_path: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    made = run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, "fresh")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "fresh" / "bin" / "python"
    got = run(tmp_path, UV, "pip", "install", "--quiet", "--python", python, f"{wheel}[service]")
    if re.search("error sending request|network", got.stderr):
        pytest.skip("no network here to install from")
    assert got.returncode == 0, got.stderr
    wrote = run(tmp_path, tmp_path / "fresh" / "bin" / "rail", "notebook")
    assert wrote.returncode == 0, wrote.stderr
    (notebook,) = tmp_path.glob("*.ipynb")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(each["source"]) for each in cells if each["cell_type"] == "code")
    done = run(tmp_path, python, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "10 bps or more from zero" in done.stdout
    assert "SIMULATED" in done.stdout
