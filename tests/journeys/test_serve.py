"""`rail serve` as a person runs it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from .conftest import RAIL


def test_serve_says_that_it_behaves_otherwise(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("[rest]\npage_cap = 3\n")
    process = subprocess.Popen(
        [RAIL, "serve", "--port", "0", "--adversary", "odd.toml"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert said[1] == "it behaves otherwise than agreed, by its file of switches\n"
