from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service import DEMO_OWNERS, Owner
from toolkit.service.policy import TERMS, Limit, Policy


def test_page_sizes_are_those_of_the_contract() -> None:
    assert {plan: terms.page for plan, terms in TERMS.items()} == {
        Plan.FREE: Limit(500, 1_000),
        Plan.BUILDER: Limit(500, 5_000),
        Plan.PRO: Limit(500, 10_000),
    }


def test_each_plan_has_a_demo_owner_with_a_key() -> None:
    held = {key: owner.plan for owner in DEMO_OWNERS for key in owner.keys}
    assert held == {
        "demo-free": Plan.FREE,
        "demo-builder": Plan.BUILDER,
        "demo-pro": Plan.PRO,
    }


def test_all_keys_of_an_owner_resolve_to_that_owner() -> None:
    ann = Owner("ann", Plan.PRO, ("first", "second"))
    policy = Policy((*DEMO_OWNERS, ann))
    assert policy.owner_of("first") is ann
    assert policy.owner_of("second") is ann


@pytest.mark.parametrize("key", ["", "firs", "first ", "FIRST", "f\u00efrst"])
def test_anything_but_the_whole_key_resolves_to_nobody(key: str) -> None:
    assert Policy((Owner("ann", Plan.PRO, ("first",)),)).owner_of(key) is None


def test_a_key_of_two_owners_is_refused_without_showing_the_key() -> None:
    owners = (Owner("ann", Plan.PRO, ("sesame",)), Owner("bob", Plan.FREE, ("sesame",)))
    with pytest.raises(InputError, match="ann, bob") as refusal:
        Policy(owners)
    assert "sesame" not in str(refusal.value)


@pytest.mark.parametrize("key", ["", "  ", "sesame ", "\tsesame"])
def test_a_key_that_a_header_could_not_carry_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="'ann' is not allowed") as refusal:
        Owner("ann", Plan.PRO, (key,))
    assert "sesame" not in str(refusal.value)


def test_keys_stay_out_of_every_repr() -> None:
    policy = Policy((Owner("ann", Plan.PRO, ("sesame",)),))
    assert "sesame" not in f"{policy!r} {policy.owners!r} {policy!s}"


@pytest.mark.parametrize("retention_s", [0, -1])
def test_a_retention_that_keeps_nothing_is_refused(retention_s: int) -> None:
    with pytest.raises(InputError, match="retention_s"):
        Policy(DEMO_OWNERS, retention_s)
