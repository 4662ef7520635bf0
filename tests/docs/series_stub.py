"""Write ``toolkit/series/analyses.pyi``: the signatures of the methods made of declarations."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from toolkit.analyses import Analysis, Family
from toolkit.series import analyses as bound
from toolkit.series.base import BOUND, Series, bound_to, docstring_of, signature_of

STUB = Path(bound.__file__).with_suffix(".pyi")
_HEAD = '''"""The methods of series that are made of declarations. Written by `make docs`."""

from abc import ABCMeta
from collections.abc import Sequence
from typing import Literal

import polars as pl

from toolkit.market import Trajectory
from toolkit.series.base import Series
from toolkit.show.result import Result
from toolkit.statistics.core.contract import Frame
from toolkit.statistics.fees.fee_table import FeeModel, Style
'''


def stub() -> str:
    """Return the text of the stub."""
    text = "\n\n".join([_HEAD, *(_class(series, family) for series, family in BOUND.items())])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _class(series: type[Series], family: Family) -> str:
    lines = [f"class {series.__name__}(Series, metaclass=ABCMeta):", f'    """{series.__doc__}"""']
    for each in bound_to(family):
        text = textwrap.indent(docstring_of(each), " " * 8).strip()
        lines += ["", f"    def {each.name}({_taken(each)}) -> Result:", f'        """{text}']
        lines += ['        """']
    return "\n".join(lines) + "\n"


def _taken(analysis: Analysis) -> str:
    parts, by_name = [], False
    for each in signature_of(analysis).parameters.values():
        if each.kind is each.KEYWORD_ONLY and not by_name:
            parts.append("*")
            by_name = True
        typed = each.name if each.annotation is each.empty else f"{each.name}: {each.annotation}"
        parts.append(typed if each.default is each.empty else f"{typed} = {each.default!r}")
    return ", ".join(parts)


if __name__ == "__main__":
    STUB.write_text(stub())
