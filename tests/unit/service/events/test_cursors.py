"""Cursors open for the question they were made for, and for no other."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import RailError
from toolkit.service.events.archive import Position, open_, seal, secret_of

SECRET = secret_of("seed-7")

positions = st.builds(Position, st.integers(0, 2**53), st.text(max_size=30), st.text(max_size=30))
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(positions, st.binary(max_size=60))
def test_a_cursor_gives_back_the_position_it_was_made_from(
    position: Position, bound: bytes
) -> None:
    assert open_(seal(position, bound, SECRET), bound, SECRET) == position


@given(positions, st.binary(max_size=60))
def test_a_cursor_is_base64url_without_padding(position: Position, bound: bytes) -> None:
    assert set(seal(position, bound, SECRET)) <= set(BASE64URL)


@given(positions, st.binary(max_size=20), st.binary(max_size=20))
def test_a_cursor_of_another_question_is_refused(
    position: Position, bound: bytes, other: bytes
) -> None:
    cursor = seal(position, bound, SECRET)
    if bound != other:
        with pytest.raises(ValueError, match=r"^cursor: "):
            open_(cursor, other, SECRET)


@given(positions, st.integers(0), st.sampled_from([*BASE64URL, "=", "+", "/", " ", "é", ""]))
def test_a_cursor_with_one_character_changed_is_refused(
    position: Position, place: int, character: str
) -> None:
    cursor = seal(position, b"", SECRET)
    place %= len(cursor)
    changed = cursor[:place] + character + cursor[place + 1 :]
    if changed != cursor:
        with pytest.raises(ValueError, match=r"^cursor: "):
            open_(changed, b"", SECRET)


@given(st.text(max_size=80) | st.text(BASE64URL, max_size=80))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(RailError, match=r"^cursor: "):
        open_(text, b"", SECRET)


@pytest.mark.parametrize("tail", ["=", "==", "\n", " ", "A"])
def test_another_spelling_of_a_cursor_is_refused(tail: str) -> None:
    cursor = seal(Position(1, "a", "b"), b"", SECRET)
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(cursor + tail, b"", SECRET)


@pytest.mark.parametrize("moved", [b" ", b"X", b"[1"])
def test_what_is_bound_and_what_is_sealed_do_not_run_into_one_another(moved: bytes) -> None:
    """The end of what was bound, put before the position instead, does not fit the seal."""
    content = urlsafe_b64decode(seal(Position(1, "ab", ""), moved, SECRET) + "==")
    forged = urlsafe_b64encode(content[:16] + moved + content[16:]).rstrip(b"=").decode()
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(forged, b"", SECRET)


def test_a_cursor_outlives_a_restart_but_not_a_change_of_source() -> None:
    cursor = seal(Position(1, "a", "b"), b"", secret_of("seed-7"))
    assert open_(cursor, b"", secret_of("seed-7")) == (1, "a", "b")
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(cursor, b"", secret_of("seed-8"))
