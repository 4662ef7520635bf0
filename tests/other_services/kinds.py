"""The kinds by name, and a service of a kind running for the length of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import polars as pl

from tests.other_services.data import Data
from tests.other_services.inforce import InForce
from tests.other_services.nested import Nested
from tests.other_services.oldest import Oldest
from tests.other_services.opposite import Opposite
from tests.other_services.rows import Rows
from tests.other_services.server import API_KEY, Answering, serving
from tests.other_services.service import OtherService
from toolkit.client import Client
from toolkit.market import Trajectory
from toolkit.wire.profile.user_profile import UserProfile

KINDS: Mapping[str, Callable[[Data], OtherService]] = {
    "nested": Nested,
    "rows": Rows,
    "opposite": Opposite,
    "opposite-unsaid": partial(Opposite, said=False),
    "inforce": InForce,
    "oldest": Oldest,
}


def running_other(kind: str, data: Data) -> AbstractContextManager[str]:
    """Run a service of a kind over data; the ``with`` block gets its base URL.

    The one valid key is `API_KEY` of `tests.other_services.server`.

    >>> from tests.other_services.data import sample
    >>> with running_other("nested", sample()) as base_url:
    ...     base_url.startswith("http://127.0.0.1:")
    True
    """
    return serving(KINDS[kind](data))


def profile_of(kind: str) -> Path:
    """Return the file by which the tests load a kind."""
    return Path(__file__).with_name(f"{kind.partition('-')[0]}.toml")


def users(text: str) -> UserProfile:
    """Return the profile of a user's file with this text."""
    return UserProfile.parsed(Path("mine.toml"), text)


def brought(
    service: Answering, profile: UserProfile, key: Trajectory | str, window: tuple[int, int]
) -> pl.DataFrame:
    """Return the rows that a client brings from a service, by time."""
    with serving(service) as base_url, Client(base_url, API_KEY, profile=profile) as client:
        return pl.concat([page.frame for page in client.pages(key, window)]).sort("ts")
