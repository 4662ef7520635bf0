from __future__ import annotations

import httpx
import pytest

from tests.counting import Ticks
from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service import Clock, Config, Owner, Replay, running
from toolkit.service.accounts import TERMS, Policy, Quotas, Reach
from toolkit.service.problems import Problem


def test_quotas_are_those_of_the_contract() -> None:
    assert [TERMS[plan].quota for plan in Plan] == [60, 600, 6_000]


def test_a_service_s_own_retention_and_quota_hold_for_every_plan() -> None:
    policy = Policy(retention_s=5, quota=7)
    for plan in Plan:
        assert (policy.terms(plan).history, policy.terms(plan).quota) == (Reach(5), 7)
        assert policy.terms(plan).spread_events == TERMS[plan].spread_events
        assert policy.terms(plan).page == TERMS[plan].page


@pytest.mark.parametrize("name", ["retention_s", "quota"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_retention_or_a_quota_of_nothing_is_refused(name: str, value: int) -> None:
    with pytest.raises(InputError, match=name):
        Policy(**{name: value})


DATA = "/api/v1/data"
ANN = Owner("ann", Plan.BUILDER, ("first", "second"))
BOB = Owner("bob", Plan.PRO, ("third",))


def spend(quotas: Quotas, owner: str, quota: int) -> int | None:
    """One request; how long a refusal asks to wait (s)."""
    try:
        quotas.spend(owner, quota, policy="builder")
    except Problem as problem:
        return int((problem.headers or {})["Retry-After"])
    return None


def test_a_quota_is_spent_by_that_many_requests_and_full_again_a_minute_after_the_first() -> None:
    ticks = Ticks()
    quotas = Quotas(ticks)
    assert [spend(quotas, "ann", 3) for _ in range(5)] == [None, None, None, 60, 60]
    ticks.now += 59.5
    assert spend(quotas, "ann", 3) == 1
    ticks.now += 0.5
    assert [spend(quotas, "ann", 3) for _ in range(4)] == [None, None, None, 60]


def test_whoever_waits_as_told_is_served() -> None:
    ticks = Ticks()
    quotas = Quotas(ticks)
    for pause in (0.1, 7.3, 31.9, 59.999):
        while spend(quotas, "ann", 2) is None:
            pass
        ticks.now += pause
        wait_s = spend(quotas, "ann", 2)
        ticks.now += wait_s or 0
        assert spend(quotas, "ann", 2) is None
        ticks.now += 60


def test_refused_requests_do_not_put_the_end_off() -> None:
    ticks = Ticks()
    quotas = Quotas(ticks)
    for _ in range(60):
        spend(quotas, "ann", 1)
        ticks.now += 1
    assert spend(quotas, "ann", 1) is None


def test_owners_do_not_spend_each_others_quota() -> None:
    quotas = Quotas(Ticks())
    assert [spend(quotas, "ann", 1) for _ in range(2)] == [None, 60]
    assert spend(quotas, "bob", 1) is None


def test_a_larger_quota_counts_what_was_spent_before() -> None:
    quotas = Quotas(Ticks())
    assert [spend(quotas, "ann", 2) for _ in range(3)] == [None, None, 60]
    assert [spend(quotas, "ann", 4) for _ in range(3)] == [None, None, 60]


@pytest.fixture
def config(replay: Replay) -> Config:
    return Config(replay, port=0, clock=Clock(fixed_at=0), owners=(ANN, BOB), quota=4)


def test_every_answer_to_an_owner_spends_quota_and_tells_what_is_left_and_when_more_comes(
    config: Config,
) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        client.headers["apikey"] = "second"
        paths = ("schemas", "history/price", "nothing")
        answers = [client.get(f"{DATA}/{path}") for path in paths]
        answers += [client.post(f"{DATA}/schemas"), client.get(f"{DATA}/schemas")]
        unknown = client.get(f"{DATA}/schemas", headers={"apikey": "bad"})
    assert [answer.status_code for answer in answers] == [200, 400, 404, 405, 429]
    for answer, left in zip(answers, (3, 2, 1, 0, 0), strict=True):
        assert answer.headers.get_list("ratelimit-policy") == ['"builder";q=4;w=60']
        assert answer.headers["ratelimit"].startswith(f'"builder";r={left};t=')
    assert "ratelimit-policy" not in unknown.headers
    refused = answers[-1]
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "quota_exhausted"
    wait_s = refused.headers["retry-after"]
    assert 1 <= int(wait_s) <= 60
    assert refused.headers["ratelimit"] == f'"builder";r=0;t={wait_s}'


def test_a_request_that_is_nobodys_spends_nobodys_quota(config: Config) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        for _ in range(9):
            assert client.get(f"{DATA}/schemas", headers={"apikey": "bad"}).status_code == 401
            assert client.get("/v1/spread/recent", headers={"apikey": "first"}).status_code == 404
        assert client.get(f"{DATA}/schemas", headers={"apikey": "first"}).status_code == 200
