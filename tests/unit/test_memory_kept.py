"""How much memory polars keeps is set when the toolkit is imported before it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NAME = "_RJEM_MALLOC_CONF"


def _run(code: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != NAME}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="polars keeps memory otherwise elsewhere")
def test_polars_keeps_one_stock_of_memory_and_for_a_fifth_of_a_second():
    said = _run(f"import os, toolkit; os.environ['{NAME}'] += ',stats_print:true'; import polars")
    whole = ("opt.narenas: 1\n", "opt.oversize_threshold: 0\n")
    for line in (*whole, "opt.dirty_decay_ms: 200 ", "opt.muzzy_decay_ms: 0 "):
        assert line in said


def test_what_somebody_has_set_is_left_as_it_is():
    said = _run(f"import os, toolkit; print(os.environ['{NAME}'])", **{NAME: "narenas:3"})
    assert said.split() == ["narenas:3"]
