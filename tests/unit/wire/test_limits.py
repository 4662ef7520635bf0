"""The limits: checked, set in one place, read from the profile, and shown in docs/interface.md."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from tests.docs.limits_table import PAGE, TABLE, limits_table
from toolkit.client import AsyncClient, Client
from toolkit.client.mcp import McpClient
from toolkit.errors import InputError
from toolkit.market import EventFamily, Family
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.user_profile import UserProfile

NAMES = [each.name for each in dataclasses.fields(Limits)]
HERE = "http://127.0.0.1:9"


def profile(text: str) -> UserProfile:
    return UserProfile.parsed(Path("mine.toml"), text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, True, "9", None, float("nan"), float("inf"), 1.5])
def test_a_limit_is_above_nothing_and_whole_where_it_counts(name: str, value: object) -> None:
    if name.endswith("_s") and value == 1.5:
        assert getattr(Limits(**{name: value}), name) == 1.5
        return
    verdict = "nothing is given" if value is None else ".* is not allowed"
    with pytest.raises(InputError, match=rf"^limits\.{name}: {verdict}; allowed: "):
        Limits(**{name: value})


def test_the_profile_sets_the_limits_of_every_client() -> None:
    users = profile("[limits]\nbody_bytes = 1024\ndocument_bytes = 70_000\nanswer_s = 5")
    wanted = dataclasses.replace(LIMITS, body_bytes=1024, document_bytes=70_000, answer_s=5)
    for kind in (Client, McpClient):
        client = kind(HERE, "key", profile=users)
        assert client.limits == wanted
        assert client.assumed.histories[Family.PRICE].limits == wanted
        assert client.speak(client.assumed).events[EventFamily.SPLASH].limits == wanted

    async def asked() -> Limits:
        async with AsyncClient(HERE, "key", profile=users) as client:
            return client.limits

    assert asyncio.run(asked()) == wanted
    with Client(HERE, "key", profile=users, limits=LIMITS) as client:
        assert client.limits == LIMITS
    with Client(HERE, "key", limits=Limits(asked_wait_s=7.0, retry_wait_s=9.0)) as client:
        assert (client.retries.longest_asked_s, client.retries.budget_s) == (7.0, 9.0)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[limits]\nbody = 1", r"limits: 'body' is not allowed; allowed: body_bytes, "),
        ("[limits]\nbody_bytes = 0", r"limits\.body_bytes: 0 is not allowed"),
        ('[limits]\nbody_bytes = "1 MB"', "mine.toml"),
    ],
)
def test_a_profile_with_another_limit_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        profile(text)


def test_the_interface_page_shows_every_limit_with_its_value_and_its_reason() -> None:
    (shown,) = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert shown == limits_table(), "`make docs` writes the table"
