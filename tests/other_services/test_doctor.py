"""Doctor's exit code is that of a sync: for every kind, with its profile, a part of it and none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.other_services.data import sample
from tests.other_services.kinds import KINDS, running_other
from tests.other_services.server import API_KEY
from toolkit.store import Store

RAIL = Path(sys.executable).with_name("rail")
KEY = "BTC_USDT:AURORA.spot"

STREAMS = (
    KEY,
    "BTC_USDT:AURORA.spot:CORONA.futures",
    "funding/BTC_USDT:CORONA.futures:DRACO.futures",
    *(f"events/{family}" for family in ("spread", "splash", "funding")),
)
HISTORIES = ("history.price", "history.spread", "history.funding")
OWN_LOGS = OWN_WORDS = ("nested", "oldest")
"""The kinds of whose profiles the logs, and the spelling, are a needed part."""

Done = subprocess.CompletedProcess[str]


def profile_of(kind: str) -> Path:
    return Path(__file__).with_name(f"{kind.partition('-')[0]}.toml")


def run(folder: Path, base_url: str, profile: Path | None, *words: str) -> Done:
    known = {name: value for name, value in os.environ.items() if name != "RAIL_PROFILE"}
    known |= {"RAIL_API_KEY": API_KEY, "RAIL_BASE_URL": base_url}
    if profile:
        known["RAIL_PROFILE"] = str(profile)
    done = subprocess.run(
        [RAIL, *words], cwd=folder, env=known, text=True, capture_output=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done


def doctor_and_sync(kind: str, profile: Path | None, folder: Path) -> tuple[Done, Done]:
    with running_other(kind, sample()) as base_url:
        return doctor_and_sync_of(base_url, profile, folder)


def doctor_and_sync_of(base_url: str, profile: Path | None, folder: Path) -> tuple[Done, Done]:
    doctor = run(folder, base_url, profile, "doctor")
    return doctor, run(folder, base_url, profile, "sync", *STREAMS, "--start", "1d")


def without(section: str, profile: str) -> str:
    parts = re.split(r"(?m)^(?=\[)", profile)
    return "".join(part for part in parts if not part.startswith(f"[{section}]"))


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False], ids=["with its profile", "without one"])
@pytest.mark.parametrize("kind", KINDS)
def test_doctor_says_usable_where_a_sync_works_and_only_there(
    kind: str, named: bool, tmp_path: Path
) -> None:
    doctor, sync = doctor_and_sync(kind, profile_of(kind) if named else None, tmp_path)
    assert doctor.returncode == sync.returncode == (0 if named else 1), doctor.stdout + sync.stderr
    if named:
        odd = kind == "inforce"  # a rate of an hour, and no more
        assert " ".join(doctor.stdout.split()).count("not understood: no rate") == odd


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_doctor_ends_as_a_sync_of_every_kind_of_stream_where_a_part_of_the_profile_lacks(
    kind: str, tmp_path: Path
) -> None:
    whole, part = profile_of(kind).read_text(), tmp_path / "part.toml"
    codes = dict.fromkeys(HISTORIES, 3) | {"listing": 1, "snapshots.spread": 0}
    codes |= {"events.splash": 3} if kind in OWN_LOGS else {}
    codes |= {"spelling": 1} if kind in OWN_WORDS else {}
    with running_other(kind, sample()) as base_url:
        for section, code in codes.items():
            part.write_text(without(section, whole))
            folder = tmp_path / section
            folder.mkdir()
            doctor, sync = doctor_and_sync_of(base_url, part, folder)
            said = f"without {section}: {doctor.stdout}{sync.stderr}"
            assert doctor.returncode == sync.returncode == code, said
            assert ("Partly usable" in doctor.stdout) == (code == 3)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("oldest", 'order = "oldest_first"', ""),
        ("rows", "limit = 500", "limit = 600"),
        ("inforce", 'wire = "at"', 'wire = "as_of"'),
    ],
)
@pytest.mark.slow
def test_a_profile_that_a_sync_cannot_read_by_is_refused_by_doctor_too(
    kind: str, right: str, wrong: str, tmp_path: Path
) -> None:
    profile = tmp_path / "wrong.toml"
    profile.write_text(profile_of(kind).read_text().replace(right, wrong))
    doctor, sync = doctor_and_sync(kind, profile, tmp_path)
    assert doctor.returncode == sync.returncode in (1, 3), doctor.stdout + sync.stderr


def agreed(draft: str) -> str:
    """Return a draft as a person makes it who agrees with all that it says."""
    lines = [re.sub(r"^# ([\w.]+ = .*)$", r"\1", line) for line in draft.splitlines()]
    return "\n".join(line for line in lines if "?" not in line)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["opposite", "opposite-unsaid", "inforce"])
def test_the_draft_of_doctor_alone_is_enough_to_load_prices(kind: str, tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    with running_other(kind, sample()) as base_url:
        assert run(tmp_path, base_url, None, "doctor", "--profile-out", draft.name).returncode == 1
        draft.write_text(agreed(draft.read_text()))
        assert run(tmp_path, base_url, draft, "doctor").returncode == 3
        done = run(tmp_path, base_url, draft, "sync", KEY, "--start", "1h")
        assert done.returncode == 0, done.stdout + done.stderr
    held = Store(tmp_path / "rail.duckdb").series(KEY)
    wanted = sample().rows[KEY].sort("ts").filter(pl.col("ts") >= held["ts"][0])
    assert held.height > 50
    assert held["price"].to_list() == wanted["price"].to_list()
