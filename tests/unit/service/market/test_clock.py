from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import httpx
import pytest

from toolkit.service import Config, Replay, running

NOW = 1_700_000_400


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/data/symbols/search", 200),
        ("/api/v1/data/symbols/search?limit=0", 400),
        ("/api/v1/data/schemas/", 404),
        ("/elsewhere", 404),
    ],
)
def test_every_answer_is_dated_by_the_services_clock(anonymous, path, status) -> None:
    answer = anonymous.get(path, headers={"apikey": "demo-free"})
    assert answer.status_code == status
    assert answer.headers.get_list("date") == ["Tue, 14 Nov 2023 22:20:00 GMT"]
    assert parsedate_to_datetime(answer.headers["date"]).timestamp() == NOW


def test_without_a_fixed_time_the_date_is_the_machines(replay: Replay) -> None:
    before = int(time.time())
    with running(Config(replay, port=0)) as service:
        answer = httpx.get(service.base_url)
    assert before <= parsedate_to_datetime(answer.headers["date"]).timestamp() <= time.time()
