from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service import DEMO_OWNERS, Clock, Config, Owner, Replay, running
from toolkit.service.accounts import DEMO, Owners, OwnersFile

ROUTE = "/api/v1/data/schemas"
ANN = '[owners.ann]\nplan = "builder"\nkeys = ["first", "second"]\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owners.toml"
    path.write_text(ANN)
    return path


def test_each_plan_has_a_demo_owner_with_a_key() -> None:
    held = {key: owner.plan for owner in DEMO_OWNERS for key in owner.keys}
    assert held == {"demo-free": Plan.FREE, "demo-builder": Plan.BUILDER, "demo-pro": Plan.PRO}
    assert all(DEMO.owner_of(key) in DEMO_OWNERS for key in held)


def test_all_keys_of_an_owner_resolve_to_that_owner() -> None:
    ann = Owner("ann", Plan.PRO, ("first", "second"))
    owners = Owners((*DEMO_OWNERS, ann))
    assert owners.owner_of("first") is ann
    assert owners.owner_of("second") is ann


@pytest.mark.parametrize("key", ["", "firs", "first ", "FIRST", "f\u00efrst"])
def test_anything_but_the_whole_key_resolves_to_nobody(key: str) -> None:
    assert Owners((Owner("ann", Plan.PRO, ("first",)),)).owner_of(key) is None


def test_a_revoked_key_opens_nothing_whoever_lists_it() -> None:
    ann = Owner("ann", Plan.PRO, ("first", "second"), revoked=("first",))
    bob = Owner("bob", Plan.FREE, ("third",), revoked=("second",))
    owners = Owners((ann, bob))
    assert [owners.owner_of(key) for key in ("first", "second", "third")] == [None, None, bob]


def test_a_key_of_two_owners_is_refused_without_showing_the_key() -> None:
    owners = (Owner("ann", Plan.PRO, ("sesame",)), Owner("bob", Plan.FREE, ("sesame",)))
    with pytest.raises(InputError, match="ann, bob") as refusal:
        Owners(owners)
    assert "sesame" not in str(refusal.value)


def test_two_owners_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="'ann' is not allowed"):
        Owners((Owner("ann", Plan.PRO, ("a",)), Owner("ann", Plan.FREE, ("b",))))


@pytest.mark.parametrize("key", ["", "  ", "sesame ", "\tsesame"])
def test_a_key_that_a_header_could_not_carry_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="'ann' is not allowed") as refusal:
        Owner("ann", Plan.PRO, (key,))
    assert "sesame" not in str(refusal.value)


def test_keys_stay_out_of_every_repr(path: Path) -> None:
    owner = Owner("ann", Plan.PRO, ("sesame",), revoked=("simsim",))
    shown = f"{owner!r} {Owners((owner,))!r} {OwnersFile(path)!r}"
    assert not [key for key in ("sesame", "simsim", "first") if key in shown]


def test_a_file_says_who_has_which_plan_and_keys(path: Path) -> None:
    path.write_text(f'{ANN}\n[owners."bob b."]\nplan = "free"\nkeys = []\nrevoked = ["second"]')
    owners = OwnersFile(path)
    assert owners.owner_of("first") == Owner("ann", Plan.BUILDER, ("first", "second"))
    assert owners.owner_of("second") is None


BROKEN = {
    "cut off": ANN[:-4],
    "a duplicate key": ANN + 'plan = "pro"',
    "not TOML": "sesame",
    "no owners": "",
    "an empty table": "[owners]",
    "another table": ANN + "[others]",
    "owners that are none": 'owners = ["sesame"]',
    "an owner that is none": '[owners]\nann = "sesame"',
    "a plan that is none": ANN.replace("builder", "sesame"),
    "a plan of another type": ANN.replace('"builder"', "[1]"),
    "no plan": '[owners.ann]\nkeys = ["sesame"]',
    "no keys": '[owners.ann]\nplan = "pro"',
    "keys that are no list": '[owners.ann]\nplan = "pro"\nkeys = "sesame"',
    "a key that is not text": '[owners.ann]\nplan = "pro"\nkeys = [1234567]',
    "an unknown field": ANN + 'sesame = "sesame"',
    "a key of two": ANN + '[owners.bob]\nplan = "pro"\nkeys = ["second"]',
    "an empty key": ANN.replace("second", ""),
    "no UTF-8": ANN.replace("second", "s\u00e9same").encode("latin-1"),
}


def write(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_a_folder_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="owners"):
        OwnersFile(tmp_path)


@pytest.mark.parametrize("text", [*BROKEN.values(), None], ids=[*BROKEN, "no file"])
def test_a_broken_file_is_refused_at_the_start_and_later_the_owners_stay_and_it_is_logged_once(
    path, text, caplog
) -> None:
    """Without its content."""
    owners = OwnersFile(path)
    if text is None:
        path.unlink()
    else:
        write(path, text)
    with pytest.raises(InputError) as refusal:
        OwnersFile(path)
    said = str(refusal.value)
    for _ in range(3):
        assert owners.owner_of("second") is not None
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.ERROR, "toolkit.service.accounts")
    said += caplog.text
    assert not [secret for secret in ("sesame", "second", "1234567") if secret in said]
    write(path, ANN.replace("second", "third"))
    assert owners.owner_of("third") is not None
    assert owners.owner_of("second") is None


def test_every_change_is_seen_however_quick_and_alike(path: Path) -> None:
    """The same length, and often the same time stamp."""
    owners = OwnersFile(path)
    for number in range(1_000, 1_200):
        write(path, ANN.replace("second", f"k{number}"))
        assert owners.owner_of(f"k{number}") is not None
        assert owners.owner_of(f"k{number - 1}") is None


@pytest.fixture
def status(path: Path, replay: Replay) -> Iterator[Callable[[str], int]]:
    """What a running service answers a key."""
    config = Config(replay, port=0, clock=Clock(fixed_at=0), owners_file=path, quota=7)
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        yield lambda key: client.get(ROUTE, headers={"apikey": key}).status_code


def test_a_file_takes_the_place_of_the_demo_owners(status: Callable[[str], int]) -> None:
    assert (status("first"), status("demo-pro")) == (200, 401)


def test_rotating_a_key_does_not_give_a_new_quota(path: Path, status: Callable[[str], int]) -> None:
    assert [status("first") for _ in range(7)] == [200] * 7
    path.write_text(ANN.replace("first", "third"))
    assert (status("third"), status("first")) == (429, 401)
