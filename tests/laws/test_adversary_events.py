"""The event logs and the first contact under every accident: all of it, or one clear error."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.adversary import adverse
from toolkit.client import Client
from toolkit.errors import RailError
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.service import Clock, Config, Simulated, running
from toolkit.wire.exchange import RetryPolicy

NOW = 1_795_046_400
WINDOW = Interval(NOW - 43_200, NOW)
CAP = 9
RETRIES = RetryPolicy(fraction=lambda: 1.0)

# Each third answer; what comes of it: None where all arrives, else the error and what it names.
ACCIDENTS = {
    "400": ("BadRequestError", "(400)"),
    "401": ("KeyRefusedError", "(401)"),
    "402": ("PlanRefusedError", "(402)"),
    "403": ("PlanRefusedError", "(403)"),
    "404": ("NotFoundError", "(404)"),
    "429": None,
    "500": ("UnavailableError", "failed (500"),
    "502": None,
    "503": None,
    "reset": None,
    "truncated": ("WireError", "truncated"),
    "html": ("WireError", "malformed"),
    "slow": None,
}


@pytest.fixture(scope="module")
def service() -> Iterator[httpx.Client]:
    config = Config(
        Simulated(7),
        port=0,
        clock=Clock(fixed_at=NOW),
        quota=10**6,
        application=adverse(control=True),
    )
    with running(config) as found, httpx.Client(base_url=found.base_url) as client:
        yield client


def become(service: httpx.Client, **rest: object) -> None:
    answer = service.put("/control/adversary", json={"rest": rest})
    assert answer.status_code == 200, answer.text


def documents(service: httpx.Client) -> list[str]:
    with Client(str(service.base_url), "demo-pro", retries=RETRIES, sleep=pass_over) as client:
        pages = client.event_pages(EventFamily.SPLASH, WINDOW)
        return [document for page in pages for document in page.frame["document"]]


def pass_over(_: float) -> None:
    """No time passes."""


@pytest.fixture(scope="module")
def truth(service: httpx.Client) -> list[str]:
    become(service)
    found = documents(service)
    assert len(set(found)) == len(found) > 3 * CAP
    return found


@pytest.mark.parametrize("kind", ACCIDENTS)
def test_all_documents_arrive_or_one_clear_error_names_the_cause(
    service: httpx.Client, truth: list[str], kind: str
) -> None:
    accident = {"kind": kind, "every": 3, "routes": ["history/splash-events"], "slow_s": 0.001}
    become(service, page_cap=CAP, accidents=[accident])
    expected = ACCIDENTS[kind]
    if expected is None:
        assert documents(service) == truth
        return
    with pytest.raises(RailError) as caught:
        documents(service)
    assert type(caught.value).__name__ == expected[0]
    assert expected[1] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("route", ["schemas", "symbols/search"])
@pytest.mark.parametrize("kind", ACCIDENTS)
def test_a_first_contact_is_read_or_fails_with_one_clear_error(
    service: httpx.Client, kind: str, route: str
) -> None:
    become(service, accidents=[{"kind": kind, "routes": [route], "slow_s": 0.001}])
    with Client(str(service.base_url), "demo-pro", retries=RETRIES, sleep=pass_over) as client:
        if kind == "slow":
            assert client.symbols().legs
            return
        with pytest.raises(RailError) as caught:
            client.symbols()
    assert route in str(caught.value)
    assert "\n" not in str(caught.value)
    if kind.isdigit():
        assert f"({kind}" in str(caught.value)


def test_documents_under_an_unknown_schema_id_and_other_names_are_kept_whole(
    service: httpx.Client, truth: list[str]
) -> None:
    become(
        service,
        schema_ids={"svc.splash.v1": "svc.splash.v2"},
        renamed_fields={"pct": "size", "event_id": "uid"},
        extra_fields={"trace": "one"},
    )
    with Client(str(service.base_url), "demo-pro") as client:
        pages = list(client.event_pages(EventFamily.SPLASH, WINDOW))
    frames = [page.frame for page in pages]
    assert sum(frame.height for frame in frames) == len(truth)
    for frame in frames:
        assert set(frame["schema_id"]) == {"svc.splash.v2"}
        assert all('"size":' in document for document in frame["document"])
        assert all(event_id.startswith("sha256:") for event_id in frame["event_id"])
