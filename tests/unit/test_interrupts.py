"""Ctrl-C: one press is one `KeyboardInterrupt`, and what it interrupts cleans up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import polars as pl
import pytest

from toolkit.errors import StoppedError
from toolkit.interrupts import later_interrupt, one_interrupt


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """Have SIGINT raise, also where a runner in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def press_from_outside() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextlib.contextmanager
def pressed_while_cleaning_up(cleaned: list[bool]) -> Iterator[None]:
    try:
        yield
    finally:
        press()
        cleaned.append(True)


def stopped() -> None:
    """End as a command does that has its own words for a Ctrl-C."""
    try:
        press()
    except KeyboardInterrupt:
        raise StoppedError from None


def sort_on_and_on_until_pressed() -> None:
    threading.Timer(0.2, press_from_outside).start()
    while True:
        pl.select(pl.int_range(3_000_000)).select(pl.all().shuffle().sort()).sum()


def test_a_press_is_a_keyboard_interrupt_and_the_handler_is_the_one_of_before() -> None:
    with pytest.raises(KeyboardInterrupt), one_interrupt():
        press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "text",
    [
        "Query interrupted",
        "Invalid Input Error: reading the object as Arrow data failed: KeyboardInterrupt: ",
    ],
)
def test_an_error_that_a_library_raises_for_a_press_is_a_keyboard_interrupt(text: str) -> None:
    with pytest.raises(KeyboardInterrupt), one_interrupt():
        raise RuntimeError(text)


def test_any_error_after_a_press_is_a_keyboard_interrupt() -> None:
    def swallows() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            press()
        raise OSError("interrupted system call")

    with pytest.raises(KeyboardInterrupt) as raised, one_interrupt():
        swallows()
    assert raised.value.__suppress_context__


def test_other_errors_and_the_words_of_a_command_pass() -> None:
    with pytest.raises(LookupError), one_interrupt():
        raise LookupError("mine")
    with pytest.raises(StoppedError), one_interrupt():
        stopped()


def test_a_press_that_ended_a_query_does_not_end_the_cleaning_up() -> None:
    cleaned = list[bool]()
    with pytest.raises(KeyboardInterrupt), one_interrupt(), pressed_while_cleaning_up(cleaned):
        raise KeyboardInterrupt  # as polars does, before Python's own handler runs
    assert cleaned == [True]


def test_a_second_press_ends_a_long_cleaning_up() -> None:
    cleaned = list[bool]()
    with pytest.raises(KeyboardInterrupt), one_interrupt(), pressed_while_cleaning_up(cleaned):
        press()
    assert not cleaned


def test_where_ctrl_c_is_ignored_or_in_another_thread_the_handler_stays() -> None:
    def handler_inside() -> object:
        with one_interrupt():
            return signal.getsignal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert handler_inside() is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen = list[object]()
    thread = threading.Thread(target=lambda: seen.append(handler_inside()))
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_query_of_polars_in_the_block_is_ended_once() -> None:
    with pytest.raises(KeyboardInterrupt), one_interrupt():
        sort_on_and_on_until_pressed()


def pressed_halfway(done: list[str]) -> None:
    with later_interrupt():
        press()
        done.append("whole")


def test_a_press_waits_for_the_end_of_a_block_that_may_not_be_left_half_done() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        pressed_halfway(done)
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
