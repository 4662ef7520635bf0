"""What the service says of a refusal reaches the user, without the key, whatever its field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.client.conftest import Asking, Scripted
from toolkit.errors import ServiceError
from toolkit.wire.profile.user_profile import UserProfile

BODIES = {
    "problem": json.dumps({"title": "Bad Request", "detail": "no such pair"}).encode(),
    "plain text": b"no such pair\n",
    "page": b"<html><title>no such pair</title><body>...</body></html>",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 500])
def test_an_error_shows_the_message_of_the_service(
    ask: Callable[..., Asking], scripted: Scripted, status: int, body: bytes
) -> None:
    scripted.answer(status, body)
    with pytest.raises(ServiceError, match="no such pair") as refused:
        ask().client.profile()
    assert refused.value.detail.endswith("no such pair")


def test_the_profile_names_the_field_of_the_services_message(
    ask: Callable[..., Asking], scripted: Scripted, tmp_path: Path
) -> None:
    scripted.answer(400, {"message": "see the fault", "fault": {"why": ["no such pair"]}}, times=2)
    path = tmp_path / "profile.toml"
    path.write_text('error_message = "fault.why[0]"')
    with pytest.raises(ServiceError) as refused:
        ask(profile=UserProfile.read(path)).client.symbols()
    assert refused.value.detail == "no such pair"
