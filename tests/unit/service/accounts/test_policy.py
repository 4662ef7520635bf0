from __future__ import annotations

import httpx
import pytest

from tests.counting import Ticks
from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service import Clock, Config, Owner, Replay, running
from toolkit.service.accounts import TERMS, Policy, Quotas, Reach
from toolkit.service.problems import Problem

HOUR_S, DAY_S = 3_600, 86_400


def test_quotas_are_those_of_the_contract() -> None:
    assert [TERMS[plan].quota for plan in Plan] == [60, 600, 6_000]


def test_depths_and_delays_are_those_of_the_contract() -> None:
    free, builder, pro = (TERMS[plan] for plan in Plan)
    assert [terms.history for terms in (free, builder, pro)] == [
        Reach(7 * DAY_S),
        Reach(30 * DAY_S),
        Reach(30 * DAY_S),
    ]
    assert free.spread_events == Reach(HOUR_S, delay_s=60)
    assert builder.spread_events == pro.spread_events == Reach(30 * DAY_S)
    assert builder.events == pro.events == Reach(30 * DAY_S)
    assert (builder.dashboard.delay_s, pro.dashboard.delay_s) == (30, 0)
    assert [terms.metadata.delay_s for terms in (free, builder, pro)] == [600, 0, 0]


def test_a_service_s_own_retention_and_quota_hold_for_every_plan() -> None:
    policy = Policy(retention_s=5, quota=7)
    for plan in Plan:
        assert (policy.terms(plan).history, policy.terms(plan).quota) == (Reach(5), 7)
        assert policy.terms(plan).spread_events == TERMS[plan].spread_events
        assert policy.terms(plan).page == TERMS[plan].page


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_retention_that_keeps_nothing_is_refused(seconds: int) -> None:
    with pytest.raises(InputError, match="retention_s"):
        Policy(retention_s=seconds)


@pytest.mark.parametrize("requests", [0, -1])
def test_a_quota_that_allows_nothing_is_refused(requests: int) -> None:
    with pytest.raises(InputError, match="quota"):
        Policy(quota=requests)


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


def test_a_spent_quota_is_a_429_that_says_when_to_come_back(config: Config) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        client.headers["apikey"] = "first"
        for _ in range(4):
            assert client.get(f"{DATA}/schemas").status_code == 200
        answer = client.get(f"{DATA}/schemas")
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "quota_exhausted"
    wait_s = answer.headers["retry-after"]
    assert 1 <= int(wait_s) <= 60
    assert answer.headers["ratelimit-policy"] == '"builder";q=4;w=60'
    assert answer.headers["ratelimit"] == f'"builder";r=0;t={wait_s}'


def test_every_answer_to_a_known_owner_tells_the_quota_and_what_is_left(config: Config) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        client.headers["apikey"] = "second"
        paths = ("schemas", "history/price", "nothing")
        answers = [client.get(f"{DATA}/{path}") for path in paths]
        unknown = client.get(f"{DATA}/schemas", headers={"apikey": "bad"})
    assert [answer.status_code for answer in answers] == [200, 400, 404]
    for answer, left in zip(answers, (3, 2, 1), strict=True):
        assert answer.headers.get_list("ratelimit-policy") == ['"builder";q=4;w=60']
        assert answer.headers["ratelimit"].startswith(f'"builder";r={left};t=')
    assert "ratelimit-policy" not in unknown.headers


def test_every_answered_request_counts_whatever_it_is_answered(config: Config) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        client.headers["apikey"] = "first"
        paths = ("history/price", "nothing", "schemas")
        assert [client.get(f"{DATA}/{path}").status_code for path in paths] == [400, 404, 200]
        assert client.post(f"{DATA}/schemas").status_code == 405
        assert client.get(f"{DATA}/schemas").status_code == 429


def test_a_request_that_is_nobodys_spends_nobodys_quota(config: Config) -> None:
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        for _ in range(9):
            assert client.get(f"{DATA}/schemas", headers={"apikey": "bad"}).status_code == 401
            assert client.get("/v1/spread/recent", headers={"apikey": "first"}).status_code == 404
        assert client.get(f"{DATA}/schemas", headers={"apikey": "first"}).status_code == 200
