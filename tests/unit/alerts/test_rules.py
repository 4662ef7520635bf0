"""Rules of alerts: every mistake is one line that names the rule, the field and what is allowed."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from toolkit.alerts import AlertKind, AlertRule, read_alerts
from toolkit.alerts.rules import EXAMPLE
from toolkit.errors import InputError
from toolkit.market import Stream

WIDE = {"name": "wide", "kind": "spread", "above_bps": 50}


def test_the_example_has_a_rule_of_each_kind() -> None:
    rules = read_alerts(tomllib.loads(EXAMPLE)["alert"])
    assert [rule.kind for rule in rules] == list(AlertKind)
    assert rules[0].for_s == 300
    assert rules[0].clear == 40.0


def test_every_field_of_the_example_that_is_commented_out_is_allowed() -> None:
    text = EXAMPLE.replace("\n# ", "\n").replace("Alerts of", "# Alerts of")
    rule = read_alerts(tomllib.loads(text)["alert"])[0]
    assert (rule.net, rule.clear, rule.send, rule.late_s) == (True, 40, ("webhook",), 3_600)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"above_bps": None}, r"wide above_bps: nothing is given.*a number above 0"),
        ({"above_bps": -1}, r"wide above_bps: -1 .* a number above 0"),
        ({"above_bps": float("nan")}, r"wide above_bps: nan"),
        ({"clear_bps": 51}, r"wide clear_bps: 51 .* at most above_bps \(50\)"),
        ({"for": "5 minutes"}, r"wide for: '5 minutes' .* such as 90s, 5m"),
        ({"above_apr_pct": 1}, r"wide \(spread\): 'above_apr_pct' .* nearest: above_bps"),
        ({"kind": "spred"}, r"wide kind: 'spred' .* spread, funding, event"),
        ({"name": ""}, r"name: '' .* a name of its own"),
        ({"net": 1}, r"wide net: 1 .* true or false"),
        ({"style": "fast"}, r"wide style: 'fast'"),
        ({"send": ["mail"]}, r"wide send: 'mail' .* webhook, chat"),
        ({"streams": ["BTC_USDT"]}, r"wide streams: 'BTC_USDT'"),
        ({"streams": ["events/splash"]}, r"wide streams: 'events/splash' .* kind spread"),
        ({"streams": []}, r"wide streams: \[\] .* one key or pattern"),
    ],
)
def test_a_mistake_names_the_rule_the_field_and_what_is_allowed(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"rail.toml alert {message}"):
        AlertRule.of(WIDE | changes, "rail.toml alert")


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="a name that no other rule has"):
        read_alerts([WIDE, WIDE])


@pytest.mark.parametrize(
    ("kind", "level", "stream", "watched"),
    [
        ("stale", {"older_than": "1m"}, "snapshot/spread", True),
        ("stale", {"older_than": "1m"}, "BTC_USD:A.spot", True),
        ("loss", {"within": "1d"}, "events/spread", True),
        ("loss", {"within": "1d"}, "snapshot/spread", False),
        ("event", {"at_least_pct": 1}, "events/spread", True),
        ("event", {"at_least_pct": 1}, "BTC_USD:A.spot:B.spot", False),
        ("funding", {"above_apr_pct": 1}, "funding/BTC_USD:A.futures:B.futures", True),
        ("funding", {"above_apr_pct": 1}, "BTC_USD:A.futures:B.futures", False),
    ],
)
def test_a_rule_watches_streams_of_its_kind(
    kind: str, level: dict[str, Any], stream: str, watched: bool
) -> None:
    rule = AlertRule.of({"name": "a", "kind": kind, **level})
    assert rule.matches(Stream.parse(stream)) is watched


@pytest.mark.parametrize("kind", ["spread", "funding"])
def test_what_snapshots_keep_is_watched_where_a_pattern_names_it(kind: str) -> None:
    level = {"spread": {"above_bps": 1}, "funding": {"above_apr_pct": 1}}[kind]
    legs = {"spread": "BTC_USD:A.spot:B.spot", "funding": "BTC_USD:A.futures"}[kind]
    kept = Stream.parse(f"snapshot-{kind}/{legs}")
    named = AlertRule.of(
        {"name": "a", "kind": kind, **level, "streams": [f"snapshot-{kind}/BTC_USD:*"]}
    )
    everything = AlertRule.of({"name": "a", "kind": kind, **level})
    assert (named.matches(kept), everything.matches(kept)) == (True, kind == "spread")
    turned = AlertRule.of(
        WIDE | {"streams": ["snapshot-spread/BTC_USD:B.spot:A.spot"], "symbols": ["BTC_USD"]}
    )
    assert turned.matches(kept) is (kind == "spread")


def test_symbols_keep_a_rule_to_their_trajectories() -> None:
    rule = AlertRule.of(WIDE | {"symbols": ["ETH_USD"]})
    asked = ("ETH_USD:A.spot:B.spot", "BTC_USD:A.spot:B.spot")
    assert [rule.matches(Stream.parse(key)) for key in asked] == [True, False]


def test_a_rule_without_streams_watches_what_snapshots_show_of_pairs_that_nobody_follows() -> None:
    rule = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 50})
    followed = frozenset([Stream.parse("BTC_USD:A.spot:B.spot")])
    shown = [
        Stream.parse(f"snapshot-spread/BTC_USD:{legs}")
        for legs in ("A.spot:B.spot", "B.spot:A.spot", "A.spot:C.spot")
    ]
    assert [rule.matches(each, followed) for each in shown] == [False, False, True]
    assert rule.matches(shown[0])
    rates = AlertRule.of({"name": "b", "kind": "funding", "above_apr_pct": 50})
    assert not rates.matches(Stream.parse("snapshot-funding/BTC_USD:A.futures"))
    some = AlertRule.of({"name": "c", "kind": "spread", "above_bps": 50, "streams": ["ETH_USD:*"]})
    assert not some.matches(shown[2], followed)
