"""Signing in, and the management route, as an owner's browser uses them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from standardwebhooks.webhooks import Webhook

from toolkit.errors import InputError
from toolkit.service import Config, running
from toolkit.service.transports.courier import may_reach, target_of

from .conftest import ENDPOINT, Sink

SignIn = Callable[..., httpx.Client]
NOTHING = {"url": None, "families": [], "enabled": False, "secret_hint": None}


@pytest.fixture
def base_url(config: Config) -> Iterator[str]:
    with running(config) as service:
        yield service.base_url


@pytest.fixture
def pro(config: Config, base_url: str, sign_in: SignIn) -> httpx.Client:
    return sign_in(config, base_url)


def test_a_code_buys_one_session_and_then_nothing(config: Config, base_url: str) -> None:
    code = config.sessions.issue("demo-pro")
    answers = [httpx.post(f"{base_url}/api/v1/auth/session", json={"code": code}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 401]
    assert answers[0].json() == {"owner": "demo-pro", "plan": "pro"}
    name, _, rest = answers[0].headers["set-cookie"].partition("=")
    assert name == "rail_session"
    assert {part.strip().lower() for part in rest.split(";")[1:]} == {
        *("httponly", "samesite=strict", "path=/api/v1/auth")
    }
    assert "set-cookie" not in answers[1].headers


@pytest.mark.parametrize("code", ["guess", "demo-pro", "", "\u20ac", "x" * 10_000])
def test_a_key_or_a_guess_never_buys_a_session(base_url: str, code: str) -> None:
    for headers in ({}, {"apikey": "demo-pro"}):
        answer = httpx.post(f"{base_url}/api/v1/auth/session", json={"code": code}, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["code"] == "unauthorized"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"code":7}', b"{}", b"x" * 70_000, b"\xff"])
def test_a_sign_in_without_a_code_is_a_400(base_url: str, body: bytes) -> None:
    answer = httpx.post(f"{base_url}/api/v1/auth/session", content=body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_request"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test")]
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"apikey": "demo-pro"},
        {"Authorization": "Bearer demo-pro"},
        {"Cookie": "rail_session=x"},
    ],
)
def test_without_a_session_everything_is_refused_whatever_the_key(base_url, method, path, headers):
    answer = httpx.request(method, f"{base_url}{ENDPOINT}{path}", headers=headers, content=b"{}")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Session realm="machine-rail"'


def test_an_endpoint_is_set_shown_changed_and_deleted(pro: httpx.Client, sink: Sink) -> None:
    assert pro.get(ENDPOINT).json() == NOTHING
    made = pro.put(ENDPOINT, json={"url": sink.url, "families": ["splash", "spread", "spread"]})
    secret = made.json().pop("secret")
    shown = {"url": sink.url, "families": ["spread", "splash"], "enabled": True}
    shown |= {"secret_hint": f"whsec_...{secret[-4:]}"}
    assert made.json() == shown | {"secret": secret}
    assert made.headers["cache-control"] == "no-store"
    assert pro.get(ENDPOINT).json() == shown
    changed = pro.put(ENDPOINT, json={"url": sink.url, "families": ["funding"]}).json()
    assert changed == shown | {"families": ["funding"]}
    assert pro.delete(ENDPOINT).status_code == 204
    assert pro.get(ENDPOINT).json() == NOTHING
    assert pro.delete(ENDPOINT).status_code == 204
    again = pro.put(ENDPOINT, json={"url": sink.url, "families": ["funding"]}).json()
    assert again["secret"] != secret


def test_each_owner_has_an_endpoint_of_their_own(config, base_url, sign_in, sink) -> None:
    pro, builder = (sign_in(config, base_url, f"demo-{plan}") for plan in ("pro", "builder"))
    assert pro.put(ENDPOINT, json={"url": sink.url, "families": ["spread"]}).status_code == 200
    assert builder.get(ENDPOINT).json() == NOTHING
    assert sign_in(config, base_url, "demo-pro").get(ENDPOINT).json()["url"] == sink.url


@pytest.mark.parametrize(
    ("url", "families", "wrong"),
    [
        ("http://hooks.example/", ["spread"], ["url"]),
        ("https://10.0.0.1/", ["spread"], ["url"]),
        ("https://169.254.169.254/latest", ["spread"], ["url"]),
        (7, ["spread"], ["url"]),
        (None, ["spread"], ["url"]),
        ("https://hooks.example/", [], ["families"]),
        ("https://hooks.example/", ["spread", "price"], ["families"]),
        ("https://hooks.example/", [["spread"]], ["families"]),
        ("https://hooks.example/", "spread", ["families"]),
        ("https://hooks.example/", None, ["families"]),
        ("ftp://hooks.example/", {}, ["url", "families"]),
    ],
)
def test_a_wrong_endpoint_is_a_400_that_names_each_part_and_changes_nothing(
    pro: httpx.Client, url: object, families: object, wrong: list[str]
) -> None:
    answer = pro.put(ENDPOINT, json={"url": url, "families": families})
    assert answer.status_code == 400
    assert [each["parameter"] for each in answer.json()["errors"]] == wrong
    assert pro.get(ENDPOINT).json() == NOTHING


def test_http_and_loopback_are_refused_without_the_flag(sign_in: SignIn, config: Config) -> None:
    strict = Config(config.source, port=0, clock=config.clock)
    with running(strict) as service:
        client = sign_in(strict, service.base_url)
        for url in ("http://127.0.0.1:1/", "https://127.0.0.1:1/", "http://localhost:1/"):
            answer = client.put(ENDPOINT, json={"url": url, "families": ["spread"]})
            assert answer.status_code == 400
        named = {"url": "https://localhost:1/", "families": ["spread"]}
        assert client.put(ENDPOINT, json=named).status_code == 200
        tried = client.post(f"{ENDPOINT}/test").json()
    assert not tried["delivered"]
    assert "no address that deliveries may go to" in tried["reason"]


def test_a_test_delivery_is_signed_tells_what_came_of_it_and_is_no_event(pro, sink) -> None:
    assert pro.post(f"{ENDPOINT}/test").status_code == 404
    secret = pro.put(ENDPOINT, json={"url": sink.url, "families": ["spread"]}).json()["secret"]
    assert pro.post(f"{ENDPOINT}/test").json() == {"delivered": True, "status": 204, "reason": None}
    sink.script = [(401, {}), (410, {})]
    told = [pro.post(f"{ENDPOINT}/test").json() for _ in range(2)]
    assert [(each["delivered"], each["status"]) for each in told] == [(False, 401), (False, 410)]
    assert pro.get(ENDPOINT).json()["enabled"]
    assert len(sink.requests) == 3
    said = Webhook(secret).verify(sink.requests[0].body, sink.requests[0].headers)
    assert said["type"] == "webhook.test"


def test_a_plan_that_was_lowered_or_an_owner_that_is_gone_loses_the_route_at_once(
    config: Config, sign_in: SignIn, tmp_path: Path
) -> None:
    file = tmp_path / "owners.toml"
    file.write_text('[owners.ann]\nplan = "pro"\nkeys = ["k"]\n[owners.bob]\nplan="pro"\nkeys=[]')
    owned = Config(config.source, port=0, clock=config.clock, owners_file=file)
    with running(owned) as service:
        ann = sign_in(owned, service.base_url, "ann")
        assert ann.get(ENDPOINT).status_code == 200
        file.write_text('[owners.ann]\nplan = "free"\nkeys = ["k"]')
        assert ann.get(ENDPOINT).status_code == 403
        file.write_text('[owners.bob]\nplan = "pro"\nkeys = ["k"]')
        assert ann.get(ENDPOINT).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/api/v1/auth/session", "POST"),
        ("POST", ENDPOINT, "DELETE, GET, HEAD, PUT"),
        ("GET", f"{ENDPOINT}/test", "POST"),
    ],
)
def test_another_method_is_a_405_that_names_those_allowed(base_url, method, path, allow) -> None:
    answer = httpx.request(method, base_url + path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json()["code"] == "method_not_allowed"


def test_no_code_token_or_secret_reaches_a_log_or_a_repr(config, base_url, sink, caplog) -> None:
    code = config.sessions.issue("demo-pro")
    with caplog.at_level(logging.DEBUG, "toolkit"), httpx.Client(base_url=base_url) as client:
        answer = client.post("/api/v1/auth/session", json={"code": code})
        token = answer.cookies["rail_session"]
        secret = client.put(ENDPOINT, json={"url": sink.url, "families": ["spread"]}).json()
        sink.script = [(500, {})]
        client.post(f"{ENDPOINT}/test")
    said = caplog.text + repr(config) + repr(config.sessions) + repr(vars(config.sessions))
    for hidden in (code, token, secret["secret"].removeprefix("whsec_")):
        assert hidden not in said


PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:93.184.216.34"]
LOOPBACK = ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"]
PRIVATE = [
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1"),
    *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "2002:a00:1::1"),
    *("2001::a00:1", "::a00:1", "not an address", "", "127.1", "2130706433", "0x7f000001"),
]


@pytest.mark.parametrize("address", [*PUBLIC, *LOOPBACK, *PRIVATE])
def test_public_addresses_and_where_allowed_loopback_ones_may_be_reached(address: str) -> None:
    assert may_reach(address, loopback=False) is (address in PUBLIC)
    assert may_reach(address, loopback=True) is (address in {*PUBLIC, *LOOPBACK})


@pytest.mark.parametrize(
    ("url", "authority", "resource"),
    [
        ("https://hooks.example", "hooks.example", "/"),
        ("https://hooks.example:8443/a/b?c=d&e", "hooks.example:8443", "/a/b?c=d&e"),
        ("HTTPS://hooks.example?x", "hooks.example", "/?x"),
        ("https://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]", "/"),
        ("https://93.184.216.34/", "93.184.216.34", "/"),
    ],
)
def test_https_to_a_name_or_a_public_address_is_a_target(url, authority, resource) -> None:
    target = target_of(url, loopback=False)
    assert (target.authority, target.resource, target.encrypted) == (authority, resource, True)


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example/", "ftp://hooks.example/", "hooks.example", "", "https://"),
        *("https://user:secretly@hooks.example/", "https://hooks.example/#secretly"),
        *("https://hooks.example:0/", "https://hooks.example:99999/", "https://[::1"),
        *("https://hooks.example/a b", "https://hooks.example/\r\nX: y", "https://h\u00f6st/"),
        *("https://hooks.example\\@10.0.0.1/", "https://hooks.example/" + "a" * 2048),
        *(f"https://{address}/" for address in ("10.0.0.1", "169.254.169.254", "127.0.0.1")),
        *("https://[::1]/", "https://[fd00::1]/", "https://[::ffff:10.0.0.1]/"),
        *("http://127.0.0.1/", "http://localhost/", "file:///etc/passwd"),
    ],
)
def test_any_other_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError) as refused:
        target_of(url, loopback=False)
    assert "secretly" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8800/", "http://localhost/", "http://[::1]:1/"])
def test_http_goes_to_this_machine_alone_and_where_that_is_allowed(url: str) -> None:
    assert not target_of(url, loopback=True).encrypted
    for other in ("http://hooks.example/", "http://10.0.0.1/", "https://10.0.0.1/"):
        with pytest.raises(InputError):
            target_of(other, loopback=True)
