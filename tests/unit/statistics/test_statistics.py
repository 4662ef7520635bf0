"""The package of statistics imports what is asked for, and says which names it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolkit import statistics


def test_every_name_that_is_listed_is_there() -> None:
    listed = dir(statistics)
    assert listed == statistics.__all__
    assert all(getattr(statistics, name) is not None for name in listed)


def test_a_name_that_it_lacks_is_an_error_of_python() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sperad'"):
        getattr(statistics, "sperad")  # noqa: B009 - a type checker refuses the plain spelling


def test_a_capture_does_not_import_the_statistics_of_events() -> None:
    program = (
        "import sys, toolkit.loader.webhook.webhooks; "
        "print(sorted({'toolkit.statistics.events', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.split() == [b"[]"]
