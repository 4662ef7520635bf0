"""A filter that is added by one declaration, in one file, has widget, link, rows and Python.

The step is that of CONTRIBUTING.md, done in a copy of the tree. What starts processes is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DECLARED = """\
    Number(
        "covered",
        Markdown("Coverage at least"),
        0.0,
        where="coverage >= {:g}",
        bounds=(0.0, 1.0),
        step=0.05,
    ),
"""
ASKED = """\
import json, os, sys
from streamlit.testing.v1 import AppTest
from toolkit.dashboard.link import page_file

def opened(**params):
    page = AppTest.from_file(page_file("spreads"), default_timeout=60)
    page.query_params.update(params)
    page.run()
    assert not page.exception
    return {
        "widget": page.get_by_key("covered").value,
        "label": page.get_by_key("covered").label,
        "link": page.query_params.get("covered"),
        "warnings": [each.value for each in page.warning],
        "says": [each.value for each in [*page.caption, *page.info]],
        "python": [each.value for each in page.code],
        "button": [each.proto.popover.label for each in page.get("popover")],
    }, page

seen, page = opened()
page.get_by_key("covered").set_value(0.25).run()
print(json.dumps({
    "usual": seen,
    "chosen": page.query_params["covered"],
    "low": opened(covered="0.5")[0],
    "high": opened(covered="0.95")[0],
    "wrong": opened(covered="2")[0],
}))
"""


@pytest.mark.slow
def test_a_filter_that_is_declared_in_one_file_has_widget_link_rows_and_python(tmp_path, held):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "toolkit", tree / "toolkit")
    choice = tree / "toolkit/dashboard/pages/spreads/choice.py"
    text, end = choice.read_text(encoding="utf-8"), ')\n"""The filters in the popover'
    assert end in text
    choice.write_text(text.replace(end, DECLARED + end), encoding="utf-8")
    settings = os.environ | {"PYTHONPATH": str(tree), "RAIL_STORE": str(held.path)}
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(
        command, cwd=tree, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["usual"]["widget"], seen["usual"]["label"]) == (0.0, "Coverage at least")
    assert seen["usual"]["link"] is None
    assert seen["chosen"] == "0.25"
    assert (seen["low"]["widget"], seen["low"]["link"]) == (0.5, "0.5")
    assert any(words.startswith("1 of 1 spreads") for words in seen["low"]["says"])
    assert any('where="coverage >= 0.5"' in lines for lines in seen["low"]["python"])
    assert "Filters (1)" in seen["low"]["button"]
    assert "No spread passes the filters. Remove one of them." in seen["high"]["says"]
    assert seen["wrong"]["widget"] == 0.0
    assert [w.partition(";")[0] for w in seen["wrong"]["warnings"]] == [
        "The link asks for `covered=2`, which is not a number from 0 to 1"
    ]
