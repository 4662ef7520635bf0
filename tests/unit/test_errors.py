from __future__ import annotations

import copy
import pickle

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from toolkit import errors

MADE = [
    errors.RailError("it broke"),
    errors.InputError("limit", 0, "1 to 10000", advice="leave it out for 500"),
    errors.UnknownTrajectoryError("BTC_USX:KRAKEN.spot", ["BTC_USD:KRAKEN.spot"]),
    *(
        kind("it broke", status=500, url="http://a/b", detail="why", code="x", retry_after_s=1.0)
        for of in (errors.ServiceError, errors.WireError)
        for kind in (of, *of.__subclasses__())
    ),
    *(
        kind("it broke", path="rail.duckdb")
        for kind in (errors.StoreError, *errors.StoreError.__subclasses__())
    ),
    errors.StoreLockedError("held", path="rail.duckdb", pid=7),
    errors.EmptyWindowError("nothing"),
    errors.StoppedError(),
    errors.ExchangeError("none answers"),
    errors.ExchangeRefusedError("too long ago", reach=60),
    errors.ExchangeOutageError("it broke", retry_after_s=1.0),
    errors.ClusterError("a part failed", streams=["BTC_USD:KRAKEN.spot"]),
    errors.MissingExtraError("service", "mcp"),
]


def test_the_examples_here_cover_every_error() -> None:
    assert {type(error).__name__ for error in MADE} == {
        name for name in vars(errors) if name.endswith("Error")
    }


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_is_one_line_and_keeps_its_facts_on_the_way_to_another_process(error) -> None:
    assert isinstance(error, errors.RailError)
    assert str(error)
    assert "\n" not in str(error)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_an_input_error_says_what_was_wrong_what_is_allowed_and_what_to_do() -> None:
    error = errors.InputError("limit", "many", "1 to 10000", advice="leave it out for 500")
    assert str(error) == "limit: 'many' is not allowed; allowed: 1 to 10000; leave it out for 500"
    assert (error.parameter, error.value, error.allowed) == ("limit", "many", "1 to 10000")
    assert isinstance(error, ValueError)


def test_an_unknown_trajectory_names_the_nearest_ones_and_only_where_there_are_any() -> None:
    near = errors.UnknownTrajectoryError("X_Y:A.spot", ["X_Z:A.spot", "X_Y:B.spot"])
    assert str(near).endswith("; nearest: X_Z:A.spot, X_Y:B.spot")
    assert near.nearest == ("X_Z:A.spot", "X_Y:B.spot")
    assert "nearest" not in str(errors.UnknownTrajectoryError("X_Y:A.spot"))


def test_a_service_error_keeps_what_the_service_said() -> None:
    error = errors.QuotaError("spent", status=429, url="http://a/b", retry_after_s=2.0)
    facts = (error.status, error.url, error.detail, error.retry_after_s)
    assert facts == (429, "http://a/b", "", 2.0)
    bare = errors.UnreachableError("no answer")
    assert (bare.status, bare.code, bare.retry_after_s) == (None, "", None)


def test_a_long_value_beside_long_words_of_what_is_allowed_leaves_one_line_of_400() -> None:
    line = str(errors.InputError("stream", "\U0001123f" * 40, "a key " * 48, advice="look"))
    assert len(line) == 400
    assert line.endswith("; look")
    short = str(errors.InputError("stream", "x" * 300, "a key"))
    assert len(short) < 230


def test_a_notebook_shows_the_sentence_of_an_error_in_one_printable_line() -> None:
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shown: list[list[str]] = []
    shell._showtraceback = lambda _kind, _error, lines: shown.append(lines)
    shell.run_cell("from toolkit.errors import StoreError\nraise StoreError('no \x1b[31m\\nstore')")
    shell.run_cell(
        "from toolkit.interrupts import one_interrupt\n"
        "with one_interrupt():\n    raise KeyboardInterrupt"
    )
    assert shown == [
        ["StoreError: no �[31m store"],
        ["KeyboardInterrupt: stopped; what was committed is kept"],
    ]
