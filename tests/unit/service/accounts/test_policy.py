from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service.accounts.policy import TERMS, Limit, Policy, Reach

HOUR_S, DAY_S = 3_600, 86_400


def test_page_sizes_are_those_of_the_contract() -> None:
    assert {plan: terms.page for plan, terms in TERMS.items()} == {
        Plan.FREE: Limit(500, 1_000),
        Plan.BUILDER: Limit(500, 5_000),
        Plan.PRO: Limit(500, 10_000),
    }


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
