"""Deliveries over real sockets: the loader's own receiver believes them, and no secret shows."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.empty_store import empty_store
from toolkit.alerts import AlertRule
from toolkit.alerts.channels import Alert, ChatChannel, Webhook, read_channels
from toolkit.errors import InputError
from toolkit.loader.webhook.webhooks import webhook_app
from toolkit.market import Source
from toolkit.store import read_deliveries
from toolkit.wire.signatures import Genuine, StandardWebhooks

from .conftest import Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SET_UP = {"RAIL_ALERT_WEBHOOK": "https://example.org", "RAIL_ALERT_SECRET": SECRET}
RULE = AlertRule.of({"name": "wide", "kind": "spread", "above_bps": 50, "for": "5m"})
KEY = "BTC_USDT:A.spot:B.spot"
MARK = {"subject": KEY, "stream": KEY, "about": KEY, "ts": 60, "value": 62.3, "change": "opened"}
ALERT = Alert.of(RULE, "source", 70, MARK)


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def test_a_webhook_is_signed_as_its_receiver_verifies_it(receiver: Receiver) -> None:
    sent = Webhook(f"http://{receiver.address}/in", SECRET).send(ALERT)
    assert sent.taken
    headers, body = receiver.came[0]
    assert StandardWebhooks([SECRET]).check(raw(headers), body) == Genuine(ALERT.alert_id)
    document = msgspec.json.decode(body)
    assert document["type"] == "alert.opened"
    assert document["data"]["words"] == (
        f"wide: {KEY} at 62.3 bps, above 50 for 5 min, 1970-01-01 00:01 UTC"
    )


def test_the_loaders_receiver_keeps_it_and_takes_a_repeat_for_one(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "s.duckdb", Source("replay", "example"))
    app = webhook_app(store, secrets=[SECRET])
    body = ALERT.body
    headers = StandardWebhooks([SECRET]).headers(ALERT.alert_id, body)

    async def deliver() -> list[int]:
        answers = []
        for _ in range(2):
            scope = {"type": "http", "method": "POST", "path": "/", "headers": raw(headers)}
            parts = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive() -> dict[str, Any]:
                return next(parts)  # noqa: B023 - used up within this turn

            async def send(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    answers.append(message["status"])

            await app(scope, receive, send)
        await app.close()
        return answers

    assert asyncio.run(deliver()) == [204, 204]
    assert read_deliveries(store)["delivery_id"].to_list() == [ALERT.alert_id]


@pytest.mark.parametrize(
    ("status", "again"), [(500, True), (429, True), (404, False), (302, False)]
)
def test_a_refusal_is_tried_again_where_that_may_help(
    receiver: Receiver, status: int, again: bool
) -> None:
    receiver.answers = [status]
    sent = Webhook(f"http://{receiver.address}/", SECRET).send(ALERT)
    assert (sent.taken, sent.again, sent.reason) == (False, again, f"status {status}")


def test_no_answer_is_tried_again_and_names_no_address() -> None:
    sent = Webhook("http://127.0.0.1:9/secret-path", SECRET).send(ALERT)
    assert sent.again
    assert "secret-path" not in str(sent.reason)


def test_chat_goes_to_each_address_once_and_shows_none(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    channel = ChatChannel(f"json://{receiver.address}/hook-4711 json://{receiver.address}/other")
    assert channel.send(ALERT).taken
    assert len(receiver.came) == 2
    assert b"above 50 for 5 min" in receiver.came[0][1]
    receiver.answers = [500]
    refused = channel.send(ALERT)
    assert (refused.taken, refused.again) == (False, False)
    assert "hook-4711" not in repr(channel) + str(refused) + caplog.text


def test_channels_come_from_the_environment_or_from_files_it_names(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n", encoding="utf-8")
    environment = {
        "RAIL_ALERT_WEBHOOK": "https://example.org/in",
        "RAIL_ALERT_SECRET_FILE": str(secret),
        "RAIL_ALERT_CHAT": "json://localhost/a",
    }
    found = read_channels(environment)
    assert list(found) == ["webhook", "chat"]
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RAIL_ALERT_WEBHOOK": "http://example.org/key"}, r"RAIL_ALERT_WEBHOOK: '\*\*\*' .*https"),
        ({"RAIL_ALERT_WEBHOOK": "example"}, r"RAIL_ALERT_WEBHOOK: '\*\*\*'"),
        ({"RAIL_ALERT_SECRET": "key"}, r"RAIL_ALERT_SECRET: '\*\*\*' .*24 to 64"),
        (
            {"RAIL_ALERT_SECRET": "", "RAIL_ALERT_SECRET_FILE": "none"},
            r"RAIL_ALERT_SECRET_FILE: 'none' .*No such file",
        ),
        ({"RAIL_ALERT_CHAT": "nothing"}, r"RAIL_ALERT_CHAT: '\*\*\*'"),
    ],
)
def test_a_mistake_in_the_environment_shows_no_value(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_channels(SET_UP | environment)


def test_the_same_change_has_the_same_id_and_each_test_one_of_its_own() -> None:
    assert Alert.of(RULE, "source", 99, MARK).alert_id == ALERT.alert_id
    for other in ({"ts": 61}, {"change": "cleared"}, {"subject": "x"}):
        assert Alert.of(RULE, "source", 70, MARK | other).alert_id != ALERT.alert_id
    assert Alert.of(RULE, "other", 70, MARK).alert_id != ALERT.alert_id
    assert Alert.test_of(RULE, 0).alert_id != Alert.test_of(RULE, 0).alert_id
    event = AlertRule.of({"name": "pumps", "kind": "event", "at_least_pct": 5})
    ids = {Alert.of(event, "s", 70, MARK | {"ts": ts}).alert_id for ts in (1, 2)}
    assert len(ids) == 1  # a document that comes again with another time


@pytest.mark.parametrize(
    ("table", "mark", "says"),
    [
        ({"kind": "spread", "above_bps": 50}, {"change": "cleared", "value": 39.0}, "40 or less"),
        ({"kind": "event", "at_least_pct": 5}, {"about": "splash.pump X_Y A spot"}, "of 62.3 %"),
        ({"kind": "event", "at_least_pct": 5}, {"change": "cleared", "value": None}, "is over"),
        ({"kind": "stale", "older_than": "10m"}, {"value": 900.0}, "nothing new of"),
        ({"kind": "stale", "older_than": "10m"}, {"change": "cleared"}, "is not old any more"),
        ({"kind": "loss", "within": "6h"}, {"value": 3_600.0}, "in 1 h"),
        ({"kind": "loss", "within": "6h"}, {"change": "cleared"}, "nothing is lost soon"),
        ({"kind": "spread", "above_bps": 5}, {"about": "a\nb\x1b[31m"}, r"ab?"),
    ],
)
def test_each_kind_has_its_words(table: dict[str, Any], mark: dict[str, Any], says: str) -> None:
    words = Alert.of(AlertRule.of({"name": "a", **table}), "s", 1, MARK | mark).words
    assert words.startswith("a: ")
    assert words.isprintable()
    if says != "ab?":
        assert says in words
