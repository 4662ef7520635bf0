"""Each REST switch does what it says, over real sockets; without any, nothing is changed."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.adversary import (
    Accident,
    Adversary,
    RestSwitches,
    WebhookSwitches,
    adversary_of,
    adverse,
    read_adversary,
)
from tests.adversary.deliveries import FaultyMessage, befall
from toolkit.errors import InputError
from toolkit.service import Clock, Config, Replay, Simulated, WebhookSettings, running

NOW = 1_700_000_400  # as in conftest
LOGGED_UNTIL = 1_795_046_400
ALPHA = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot"}
PRICE = "/api/v1/data/history/price"


@pytest.fixture(scope="module")
def controlled(replay: Replay) -> Iterator[httpx.Client]:
    """A service whose switches a test sets."""
    config = Config(
        replay, port=0, clock=Clock(fixed_at=NOW), quota=10**6, application=adverse(control=True)
    )
    with (
        running(config) as service,
        httpx.Client(base_url=service.base_url, headers={"apikey": "demo-pro"}) as client,
    ):
        yield client


@pytest.fixture
def switched(controlled: httpx.Client) -> Callable[..., httpx.Client]:
    """The service, once it behaves as the switches say."""

    def become(**rest: object) -> httpx.Client:
        answer = controlled.put("/control/adversary", json={"rest": rest})
        assert answer.status_code == 200, answer.text
        return controlled

    return become


def page(client: httpx.Client, **query: object) -> dict[str, Any]:
    answer = client.get(PRICE, params=ALPHA | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ages(found: dict[str, Any]) -> list[int]:
    return [NOW - item["ts"] for item in found["items"]]


def test_without_a_switch_every_answer_is_the_faithful_ones_byte_for_byte(switched, base_url):
    client = switched()
    with httpx.Client(base_url=base_url, headers={"apikey": "demo-pro"}) as faithful:
        for path in ("schemas", "symbols/search", "history/price", "dashboards/spread"):
            asked = [c.get(f"/api/v1/data/{path}", params=ALPHA) for c in (client, faithful)]
            assert asked[0].content == asked[1].content


def test_the_openapi_document_is_served_beside_the_switches(switched) -> None:
    answer = switched(page_cap=3, renamed_fields={"price": "px"}).get("/openapi.json")
    assert len(answer.json()["paths"]) == 11


def test_an_inclusive_end_time_brings_the_row_at_it(switched) -> None:
    assert ages(page(switched(end_time="inclusive"), end_time=NOW - 60, limit=2)) == [60, 120]
    assert ages(page(switched(), end_time=NOW - 60, limit=2)) == [120, 180]


@pytest.mark.parametrize(("says", "offset"), [("oldest", 0), ("oldest-1", -1), ("oldest+1", 1)])
def test_the_paging_value_lies_beside_the_oldest_row(switched, says: str, offset: int) -> None:
    assert page(switched(next_end_time=says), limit=2)["next_end_time"] == NOW - 120 + offset


@pytest.mark.parametrize(
    ("at_end", "said"),
    [("null", None), ("missing", "nothing"), ("echo", NOW), ("repeat", NOW - 480)],
)
def test_the_last_page_ends_as_told(switched, at_end: str, said: object) -> None:
    last = page(switched(at_end=at_end), end_time=NOW, limit=500)
    assert len(last["items"]) == 8
    assert last.get("next_end_time", "nothing") == said


def test_beyond_a_repeating_end_the_last_page_comes_again(switched) -> None:
    beyond = page(switched(at_end="repeat"), end_time=NOW - 480, limit=3)
    assert ages(beyond) == [360, 420, 480]
    assert beyond["next_end_time"] == NOW - 480


def test_a_page_cap_cuts_pages_below_the_limit_asked_for(switched) -> None:
    found = page(switched(page_cap=3), limit=500)
    assert (ages(found), found["next_end_time"]) == ([60, 120, 180], NOW - 180)


def test_no_page_reaches_over_a_boundary_and_where_no_rows_are_it_is_empty(switched) -> None:
    client = switched(empty_pages_s=240)
    seen, asked = [], NOW + 600
    for _ in range(20):
        found = page(client, end_time=asked, limit=500)
        seen.append(ages(found))
        asked = found["next_end_time"]
        if asked is None:
            break
    assert [] in seen
    assert [age for ages_ in seen for age in ages_] == list(range(60, 540, 60))


def test_rounded_times_put_several_rows_into_a_second_which_a_page_edge_may_cut(switched) -> None:
    client = switched(tie_s=180)
    everything = [item["ts"] for item in page(client)["items"]]
    assert all(ts % 180 == 0 for ts in everything)
    assert len(everything) == 8 > len(set(everything))
    second = everything[3]
    before = page(client, end_time=second + 1)["items"]
    assert [item["ts"] for item in before] == [ts for ts in everything if ts <= second]


def test_fields_are_renamed_left_out_added_and_sent_in_another_unit_and_schemas_says_so(switched):
    client = switched(
        renamed_fields={"price": "px"},
        missing_fields=["volume"],
        extra_fields={"depth": 3},
        units={"ts": "ms"},
        renamed_tools={"data.get_price_history": "market.prices"},
    )
    item = page(client, limit=1)["items"][0]
    assert item == {"ts": (NOW - 60) * 1000, "px": 107.0, "mark_price": None, "depth": 3}
    tools = client.get("/api/v1/data/schemas").json()["tools"]
    fields = tools["market.prices"]["record"]["fields"]
    assert {name: field["unit"] for name, field in fields.items()} == {
        "ts": "ms",
        "px": "quote",
        "mark_price": "quote",
        "depth": None,
    }
    assert "data.get_price_history" not in tools


@pytest.fixture(scope="module")
def logged() -> Iterator[httpx.Client]:
    """A service of event logs whose switches a test sets."""
    config = Config(
        Simulated(7), port=0, clock=Clock(fixed_at=LOGGED_UNTIL), application=adverse(control=True)
    )
    with (
        running(config) as service,
        httpx.Client(
            base_url=service.base_url, headers={"apikey": "demo-pro"}, timeout=60
        ) as client,
    ):
        yield client


def splashes(client: httpx.Client, most: int = 1, **rest: object) -> list[dict[str, Any]]:
    """The first pages of half a day of splash events, as the switches make them."""
    assert client.put("/control/adversary", json={"rest": rest}).status_code == 200
    query: dict[str, Any] = {"start_time": LOGGED_UNTIL - 43_200, "end_time": LOGGED_UNTIL}
    pages: list[dict[str, Any]] = []
    while len(pages) < most and (not pages or pages[-1]["has_more"]):
        pages.append(client.get("/api/v1/data/history/splash-events", params=query).json())
        query["cursor"] = pages[-1].get("next_cursor")
    return pages


@pytest.mark.slow
def test_event_documents_carry_another_schema_id_and_other_names_and_pages_are_capped(logged):
    named = {"schema_ids": {"svc.splash.v1": "svc.splash.v2"}, "renamed_fields": {"pct": "size"}}
    first, second = splashes(logged, 2, **named, page_cap=5)
    schema = logged.get("/api/v1/data/schemas").json()["tools"]["data.get_splash_events"][
        "document"
    ]
    assert {item["schema"] for item in first["items"]} == {"svc.splash.v2"}
    assert all("size" in item and "pct" not in item for item in first["items"])
    assert len(first["items"]) == len(second["items"]) == 5
    assert "svc.splash.v2" in str(schema)
    assert "size" in schema["properties"]


@pytest.mark.parametrize(
    ("form", "header"),
    [("seconds", "7"), ("date", "Tue, 14 Nov 2023 22:20:07 GMT"), ("none", None)],
)
def test_a_spent_quota_says_when_to_ask_again_in_each_form(switched, form, header) -> None:
    accident = {"kind": "429", "retry_after": form, "retry_after_s": 7}
    answer = switched(accidents=[accident]).get(PRICE, params=ALPHA)
    assert answer.headers.get("retry-after") == header


def test_an_accident_befalls_each_nth_answer_and_only_so_many_times(switched) -> None:
    client = switched(accidents=[{"kind": "503", "every": 2, "times": 2}])
    statuses = [client.get(PRICE, params=ALPHA).status_code for _ in range(8)]
    assert statuses == [200, 503, 200, 503, 200, 200, 200, 200]


def test_the_control_route_refuses_unknown_switches_and_changes_nothing(switched, controlled):
    switched(page_cap=3)
    for body in ({"rest": {"page_caps": 3}}, {"rest": {"page_cap": 0}}, {"rest": {"at_end": "x"}}):
        assert controlled.put("/control/adversary", json=body).status_code == 400
    assert controlled.put("/control/adversary", content=b"{").status_code == 400
    assert controlled.get("/control/adversary").json()["rest"]["page_cap"] == 3


def test_only_a_test_build_opens_the_control_route(base_url: str) -> None:
    assert httpx.put(f"{base_url}/control/adversary", json={}).status_code == 404


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("page_cap = 3", "rest"),
        ("[rest]\npage_caps = 3", "page_cap"),
        ("[[rest.accidents]]\nkind = '503'\nevry = 2", "every"),
        ("[rest]\nat_end = 'sometimes'", "sometimes"),
        ("[[rest.accidents]]\nkind = '418'", "418"),
        ("[rest]\ntie_s = 0", "tie_s"),
        ("rest = 3", "object"),
        ("[rest", "TOML"),
    ],
)
def test_a_file_that_says_what_is_unknown_is_refused_naming_what_is_allowed(tmp_path, text, named):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=named):
        read_adversary(path)


def test_a_file_says_the_same_as_the_switches_themselves(tmp_path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(
        "archive_lag_s = 5\n[rest]\nat_end = 'echo'\nunits = { spread_pct = 'bps' }\n"
        "[[rest.accidents]]\nkind = '429'\nevery = 3\nretry_after = 'date'\n"
    )
    accident = Accident("429", every=3, retry_after="date")
    rest = RestSwitches(at_end="echo", units={"spread_pct": "bps"}, accidents=(accident,))
    assert read_adversary(path) == Adversary(archive_lag_s=5, rest=rest)
    assert adversary_of({}) == Adversary()


def test_the_page_about_the_adversary_explains_every_switch_of_rest() -> None:
    page = (Path(__file__).parents[3] / "docs" / "adversary.md").read_text()
    for kind in (RestSwitches, Accident):
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in page, f"docs/adversary.md does not explain {field.name}"


def test_the_page_about_the_adversary_shows_a_file_that_can_be_read(tmp_path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "adversary.md").read_text()
    path = tmp_path / "odd.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    assert read_adversary(path).rest.accidents


def test_a_file_that_is_not_there_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        read_adversary(tmp_path / "none.toml")


def stamps(client: httpx.Client, **query: object) -> list[int]:
    return [row["ts"] for row in page(client, **query)["items"]]


def test_pages_are_oldest_first_in_each_of_four_ways(switched) -> None:
    newest = stamps(switched(), limit=4)
    every = stamps(switched(), limit=1_000)[::-1]
    middle = every[len(every) // 2]

    assert stamps(switched(pages="rising"), limit=4) == newest[::-1]
    assert stamps(switched(pages="oldest"), limit=4, end_time=middle) == every[:4]
    assert stamps(switched(pages="oldest"), limit=4, end_time=every[2]) == every[:2]
    assert stamps(switched(pages="ignored"), limit=4, end_time=every[2]) == every[:4]
    at = every.index(middle)
    assert stamps(switched(pages="forwards"), limit=4, end_time=middle) == every[at : at + 4]
    assert page(switched(pages="forwards"), limit=1_000)["next_end_time"] is None


def test_an_empty_page_is_a_204_without_a_body(switched) -> None:
    client = switched(no_content=True)

    answer = client.get(PRICE, params=ALPHA | {"end_time": 60})
    assert (answer.status_code, answer.content) == (204, b"")
    assert stamps(client, limit=2) == stamps(switched(), limit=2)


def test_a_capped_listing_has_no_truncated(switched) -> None:
    whole = switched().get("/api/v1/data/symbols/search").json()["items"]

    found = switched(symbols_cap=1).get("/api/v1/data/symbols/search").json()
    assert found == {"type": "symbols_page", "items": whole[:1]}


def test_decimal_numbers_are_text(switched) -> None:
    row = page(switched(), limit=1)["items"][0]

    assert page(switched(numbers="text"), limit=1)["items"][0]["price"] == str(row["price"])


@pytest.mark.parametrize(
    ("names", "shown"), [("cursor", {"next_cursor"}), ("more", {"has_more"}), ("neither", set())]
)
@pytest.mark.parametrize("pages", ["backwards", "rising"])
def test_an_event_page_names_what_is_left_of_its_paging_fields(logged, names, shown, pages) -> None:
    (page,) = splashes(logged, cursor_names=names, pages=pages, page_cap=3)
    times = [item["ts"] for item in page["items"]]
    assert times == sorted(times, reverse=pages == "backwards")
    assert set(page) == {"type", "items"} | shown


def test_a_log_that_is_oldest_first_is_so_from_page_to_page(logged: httpx.Client) -> None:
    pages = splashes(logged, 99, pages="rising", page_cap=7)
    found = [item["ts_ms"] for page in pages for item in page["items"]]
    assert len(found) > 20
    assert found == sorted(found)


MANY = [FaultyMessage(f"m{number}", b"{}") for number in range(20_000)]


def test_without_switches_deliveries_stay_as_they_are() -> None:
    assert befall(MANY, WebhookSwitches(), random.Random(1)) == MANY


@pytest.mark.slow
def test_the_shares_are_those_asked_for_and_nothing_is_left_out() -> None:
    switches = WebhookSwitches(duplicated=0.05, reordered=0.05, replayed=0.02, tampered=0.01)
    made = befall(MANY, switches, random.Random(1))
    times = Counter(delivery.identity for delivery in made if not delivery.replayed)
    assert len(times) == len(MANY)
    assert sum(n == 2 for n in times.values()) == pytest.approx(1000, rel=0.15)
    assert sum(delivery.tampered for delivery in made) == pytest.approx(200, rel=0.3)
    assert sum(delivery.replayed for delivery in made) == pytest.approx(400, rel=0.25)


@pytest.mark.slow
def test_reordered_deliveries_come_after_some_that_followed_them() -> None:
    made = befall(MANY, WebhookSwitches(reordered=0.05), random.Random(1))
    turns = [int(delivery.identity[1:]) for delivery in made]
    assert sorted(turns) == list(range(len(MANY)))
    late = sum(now < before for before, now in pairwise(turns))
    assert late == pytest.approx(1000, rel=0.15)
    assert max(place - turn for place, turn in enumerate(turns)) <= 100


@pytest.mark.parametrize(
    "options", [{"in_flight": 0}, {"timeout_s": 0.0}, {"retries_s": (1.0, -1.0)}]
)
def test_settings_that_make_no_sense_are_an_input_error(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        WebhookSettings(**options)
