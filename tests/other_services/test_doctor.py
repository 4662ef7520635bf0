"""Doctor's exit code is that of a sync, for every kind, with its profile and without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.other_services.data import sample
from tests.other_services.kinds import KINDS, running_other
from tests.other_services.server import API_KEY

RAIL = Path(sys.executable).with_name("rail")
KEY = "BTC_USDT:AURORA.spot"


@pytest.mark.parametrize("named", [True, False], ids=["with its profile", "without one"])
@pytest.mark.parametrize("kind", KINDS)
def test_doctor_says_usable_where_a_sync_works_and_only_there(
    kind: str, named: bool, tmp_path: Path
) -> None:
    with running_other(kind, sample()) as base_url:
        known = {name: value for name, value in os.environ.items() if name != "RAIL_PROFILE"}
        known |= {"RAIL_API_KEY": API_KEY, "RAIL_BASE_URL": base_url}
        if named:
            file = Path(__file__).with_name(f"{kind.partition('-')[0]}.toml")
            known["RAIL_PROFILE"] = str(file)

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [RAIL, *words], cwd=tmp_path, env=known, text=True, capture_output=True, check=False
            )

        doctor, sync = run("doctor"), run("sync", KEY, "--start", "1h")
    assert doctor.returncode == sync.returncode == (0 if named else 1), doctor.stdout + sync.stderr
    assert "Traceback" not in doctor.stderr + sync.stderr
    if named:
        odd = "no interval_hours" if kind == "inforce" else ""  # a rate of an hour, and no more
        assert (" ".join(doctor.stdout.split()).count("not understood"), odd in doctor.stdout) == (
            bool(odd),
            True,
        )
