"""The examination of a service in every state: no traceback, the cause named, usable or not."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.adversary import adverse
from tests.other_services.server import Answer, Question, serving
from toolkit.errors import InputError
from toolkit.service import Clock, Config, Simulated, running
from toolkit.service.market.simulator import MARKETS
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.workspace import Settings
from toolkit.workspace.doctor import Examination, examine
from toolkit.workspace.routes import Check, State

NOW = 1_795_046_400  # 2026-11-19
DRAFT = "draft of a profile"
DEMO = {"apikey": "demo-pro"}

Examine = Callable[..., Examination]


@pytest.fixture(scope="module")
def service() -> Iterator[httpx.Client]:
    markets = {symbol: MARKETS[symbol] for symbol in ("BTC_USDT", "ETH_USDT", "SOL_USDT")}
    config = Config(
        Simulated(7, markets=markets),
        port=0,
        clock=Clock(fixed_at=NOW),
        quota=10**6,
        application=adverse(control=True),
    )
    with running(config) as found, httpx.Client(base_url=found.base_url) as client:
        # the first answer detects a week of events: on a busy machine that takes too long for it
        activity = client.get("/api/v1/data/event-activity", headers=DEMO, timeout=300)
        assert activity.status_code == 200
        yield client


@pytest.fixture
def examined(service: httpx.Client) -> Examine:
    """Examines the service once it behaves as the switches say. No wait takes time."""

    def ask(
        key: str = "demo-pro",
        profile: Path | None = None,
        waits: list[float] | None = None,
        streams: Sequence[str] = (),
        **rest: object,
    ) -> Examination:
        answer = service.put("/control/adversary", json={"rest": rest})
        assert answer.status_code == 200, answer.text
        users = UserProfile.read(profile) if profile else None
        settings = Settings(str(service.base_url), key, users)
        return examine(settings, streams, sleep=([] if waits is None else waits).append)

    return ask


def check(found: Examination, name: str) -> Check:
    return next(each for each in found.checks if each.name == name)


@pytest.mark.slow
def test_the_faithful_service_passes_every_check_but_the_standing_clock(examined: Examine) -> None:
    found = examined()
    assert found.usable
    assert not found.differs
    assert [c.name for c in found.checks if c.state is not State.OK] == ["clock"]
    assert check(found, "plan").says.startswith("pro; 10 routes answer; 1,000,000 requests in 1 m")
    assert "2026-11-19 00:00 UTC" in check(found, "clock").says
    for figure in ("spread_pct", "differential_pct_8h"):
        assert " is what the legs give in all of " in check(found, figure).says
    names = [c.name for c in found.checks]
    assert names[:5] == ["reachable", "key", "plan", "clock", "/schemas"]
    assert names[-5:] == ["/mcp", "market", "spread events", "splash events", "funding events"]


@pytest.mark.slow
def test_prices_sent_as_text_fail_with_the_profile_s_line(examined: Examine) -> None:
    found = check(examined(numbers="text"), "history/price")
    assert found.state is State.FAILED
    assert "price is null in" in found.says
    assert 'numbers = "text" in [history.price]' in found.says


@pytest.mark.slow
def test_a_listing_cut_without_a_word_is_a_note(examined: Examine) -> None:
    found = check(examined(symbols_cap=2), "symbols/search")
    assert found.state is State.NOTE
    assert "3 symbols, " in found.says
    assert "1 finding, e.g. listing_cut: 2 symbols came of 1000 asked for" in found.says


@pytest.mark.slow
def test_a_free_key_is_usable_and_what_its_plan_lacks_is_no_failure(examined: Examine) -> None:
    found = examined("demo-free")
    assert found.usable
    assert State.FAILED not in {c.state for c in found.checks}
    assert check(found, "plan").says.startswith("free; 4 routes answer, 6 are not in it")
    assert check(found, "/mcp").state is check(found, "market").state is State.REFUSED


@pytest.mark.parametrize(
    "kind", ["400", "402", "403", "404", "429", "500", "reset", "truncated", "html"]
)
@pytest.mark.slow
def test_whatever_every_answer_is_it_is_named_and_the_service_not_usable(
    examined: Examine, kind: str
) -> None:
    found = examined(accidents=[{"kind": kind}])
    assert not found.usable
    said = " ".join(each.says for each in found.checks)
    named = {"reset": "no answer", "truncated": "truncated", "html": "a web page came"}
    assert named.get(kind, f"{kind}") in said
    assert "\n" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "every"),
    [
        *[("401", 2), ("429", 3), ("500", 2), ("reset", 3), ("truncated", 2), ("html", 3)],
        ("slow", 2),
    ],
)
def test_accidents_now_and_then_are_told_apart_from_what_answers(
    examined: Examine, kind: str, every: int
) -> None:
    found = examined(accidents=[{"kind": kind, "every": every, "slow_s": 0.001}])
    assert check(found, "reachable").state is State.OK
    assert check(found, "/mcp").state is State.OK
    failed = [each for each in found.checks if each.state is State.FAILED]
    assert bool(failed) == (kind not in ("429", "reset", "slow"))


@pytest.mark.slow
def test_a_quota_that_is_spent_now_and_then_is_waited_for_as_the_service_asks(
    examined: Examine,
) -> None:
    waits: list[float] = []
    found = examined(accidents=[{"kind": "429", "every": 2, "retry_after_s": 7}], waits=waits)
    assert found.usable
    assert [c.name for c in found.checks if c.state is not State.OK] == ["clock"]
    assert min(waits) >= 7


def test_a_quota_that_waiting_does_not_renew_ends_the_examination(examined: Examine) -> None:
    waits: list[float] = []
    found = examined(accidents=[{"kind": "429", "retry_after_s": 7}], waits=waits)
    assert [check.name for check in found.checks] == ["reachable", "key", "quota"]
    assert not found.usable
    assert 0 < len(waits) < 10


@pytest.mark.slow
def test_a_service_that_hides_its_schemas_is_taken_as_built_in_and_usable(
    examined: Examine,
) -> None:
    for kind in ("404", "html", "truncated", "500"):
        found = examined(accidents=[{"kind": kind, "routes": ["schemas"]}])
        assert found.usable
        assert found.source.startswith("Source not stated")
        assert check(found, "/schemas").state is State.FAILED


def test_other_units_and_fields_beyond_those_expected_are_noted(examined: Examine) -> None:
    found = examined(units={"spread_pct": "bps", "ts": "ms"}, extra_fields={"depth": 3})
    assert found.usable
    assert not found.differs
    assert check(found, "spread record").says == (
        "4 of 4 fields found; converted: ts in ms, spread_pct in bps; unknown, kept in extra: depth"
    )


def verdict_of(found: Examination, column: str) -> str:
    """The line that is to be in force, of a figure that both legs speak against."""
    verdict = check(found, column)
    assert verdict.state is State.FAILED
    assert " where the legs give " in verdict.says
    line = next(each for each in found.draft.splitlines() if f"# fields.{column} = " in each)
    assert line.strip("# ") in verdict.advice
    return line.partition(" = ")[2]


def test_signs_that_both_legs_speak_against_are_noted_and_wrong_by_a_verdict_with_their_lines(
    examined: Examine,
) -> None:
    found = examined(reversed_fields=["spread_pct", "differential_pct_8h"], undeclared=True)
    assert found.usable
    spread = check(found, "history/spread")
    assert spread.state is State.NOTE
    assert "a value has the opposite sign of what its legs give: in " in spread.says
    assert (
        spread.advice == "in the profile: [history.spread] fields.spread_pct = { reversed = true }"
    )
    assert check(found, "history/price").state is State.OK
    assert verdict_of(found, "spread_pct") == '{ unit = "percent", reversed = true }'
    unit = '{ unit = "percent_per_8h", reversed = true }'
    assert verdict_of(found, "differential_pct_8h") == unit


def test_a_unit_that_both_legs_speak_against_is_wrong_by_a_verdict_with_its_line(
    examined: Examine,
) -> None:
    found = examined(units={"spread_pct": "bps"}, undeclared=True)
    assert found.usable
    assert verdict_of(found, "spread_pct") == '{ unit = "bps", reversed = false }'


def test_other_schema_ids_of_events_are_noted(examined: Examine) -> None:
    found = examined(schema_ids={"svc.spread.v1": "svc.spread.v2"})
    assert check(found, "history/spread-events").state is State.NOTE
    assert "svc.spread.v2" in check(found, "history/spread-events").says


def test_the_draft_of_a_renamed_service_has_in_force_what_its_rows_prove_and_proposes_the_rest(
    examined: Examine, tmp_path: Path
) -> None:
    found = examined(
        renamed_fields={"ts": "t", "buy_price": "long_px", "price": "xyz"},
        renamed_tools={"data.get_spread_events": "rail.spread_events"},
    )
    assert not found.usable
    assert found.differs
    assert check(found, "spread record").state is State.FAILED
    path = tmp_path / "draft.toml"
    path.write_text(found.draft)
    said = tomllib.loads(found.draft)
    history = {family: lines["fields"] for family, lines in said.pop("history").items()}
    assert not any(said.values())
    assert {lines["ts"]["wire"] for lines in history.values()} == {"t"}
    assert history["price"]["price"] == {"wire": "xyz", "unit": "quote"}
    assert history["spread"]["buy_price"] == {"wire": "long_px", "unit": "quote"}
    assert "by it a load reads history/price, history/spread" in check(found, DRAFT).says
    # MCP lists its tools by the names of the service's start, and so otherwise than /schemas.
    assert '# spread_events = "data.get_spread_events"' in found.draft


def test_names_that_would_break_out_of_the_draft_stay_inside_comments_and_strings(
    examined: Examine, tmp_path: Path
) -> None:
    evil = 'ts"\nsymbols_path = "/evil'
    found = examined(renamed_fields={"ts": evil, "price": "p\x1b[31m"})
    path = tmp_path / "draft.toml"
    path.write_text(found.draft)
    UserProfile.read(path)
    said = tomllib.loads(found.draft)
    assert said.keys() <= {"history", "tools", "streams"}
    assert all("ts" not in lines["fields"] for lines in said["history"].values() if lines)
    assert "\x1b" not in found.draft


def test_keys_that_are_typed_are_asked_for_alone(examined: Examine) -> None:
    key = "BTC_USDT:CORONA.futures:AURORA.spot"
    found = examined(streams=[key, "events/splash"])
    assert (found.readable, found.unreadable) == (["history/spread", "history/splash-events"], [])
    assert key in check(found, "history/spread").says
    assert check(found, "spread_pct").state is State.OK
    with pytest.raises(InputError, match="trajectories and event logs"):
        examined(streams=["snapshot/spread"])


def test_no_service_and_a_wrong_key_end_it_at_once(examined: Examine) -> None:
    wrong = examined("wrong")
    assert [(c.name, c.state) for c in wrong.checks][-1] == ("key", State.FAILED)
    nowhere = Settings("http://127.0.0.1:9", "key")
    assert [c.name for c in examine(nowhere).checks] == ["reachable"]
    assert not examine(replace(nowhere, base_url="https://no.such.host.invalid")).usable


class Stranger:
    """Something that is no machine-rail service at all, and answers everything alike."""

    clock = Clock(fixed_at=NOW)

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.said = Answer(body, status, {"Content-Type": "text/plain"} | headers)

    def answer(self, _: Question) -> Answer:
        return self.said


@pytest.mark.parametrize(
    ("status", "body", "headers", "named"),
    [
        (200, b"", {}, "not JSON"),
        (200, b"{}", {}, "does not describe"),
        (200, b"[]", {"Content-Type": "application/json"}, "does not describe"),
        (200, b'{"items": [], "tools": {}}', {}, "does not describe"),
        (200, b'{"items": [3, {"ts": "x"}], "tools": {"a": 1}, "source": 2}', {}, "does not"),
        (200, b"\xff\xfe\x00", {"Date": "yesterday"}, "not JSON"),
        (200, b"[" * 5_000, {}, "not JSON"),
        (204, b"", {}, "204"),
        (301, b"", {"Location": "https://rail.example/"}, "moved to https://rail.example/"),
        (418, b'{"detail": "\\u001b[31mred\\n"}', {}, "418"),
    ],
)
def test_a_stranger_at_the_address_is_survived_and_named(
    status: int, body: bytes, headers: dict[str, str], named: str
) -> None:
    with serving(Stranger(status, body, headers)) as url:
        found = examine(Settings(url, "key"))
    assert not found.usable
    assert named in check(found, "/schemas").says


def test_a_key_that_is_refused_with_status_200_is_refused() -> None:
    with serving(Stranger(200, b'{"code": 50111, "msg": "Invalid API key"}', {})) as url:
        found = examine(Settings(url, "key"))
    assert (check(found, "key").state, found.usable) == (State.FAILED, False)
