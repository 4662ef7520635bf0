"""`rail webhook setup`: the service's webhook is set, shown, tested and removed by a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from standardwebhooks.webhooks import Webhook

from tests.unit.alerts.conftest import Receiver, receiver
from toolkit.client.webhook_session import WebhookSession
from toolkit.errors import KeyRefusedError, UnreachableError
from toolkit.service import Config, Simulated, WebhookSettings, running

from .conftest import Rail, refused

ENDPOINT = "https://hooks.example/rail"
SIGNING_IN = ("--code-env", "RAIL_CODE")
__all__ = ["receiver"]


@pytest.fixture(scope="module")
def config() -> Config:
    return Config(Simulated(7), port=0, webhooks=WebhookSettings(loopback=True))


@pytest.fixture(scope="module")
def local(config: Config) -> Iterator[str]:
    with running(config) as service:
        yield service.base_url


@pytest.fixture
def setup(rail: Rail, config: Config, local: str) -> Iterator[Rail]:
    """Run `rail webhook setup` at the local service, with a new code of an owner in RAIL_CODE."""

    def run(*arguments: str, owner: str = "demo-pro") -> CompletedProcess[str]:
        code = config.sessions.issue(owner)
        done = rail("webhook", "setup", *arguments, base_url=local, code=code)
        assert code not in done.stdout + done.stderr
        return done

    yield run
    with WebhookSession(local) as session:
        session.sign_in(config.sessions.issue("demo-pro"))
        session.remove()


def test_an_endpoint_is_set_shown_changed_and_removed(setup: Rail, workdir: Path) -> None:
    done = setup(ENDPOINT, *SIGNING_IN, "--family", "spread")
    assert done.returncode == 0, done.stderr
    secret = (workdir / "rail-webhook.secret").read_text().strip()
    assert secret.startswith("whsec_")
    assert secret not in done.stdout + done.stderr
    for name in ("rail-webhook.secret", "rail-webhook.session"):
        assert (workdir / name).stat().st_mode & 0o777 == 0o600
    shown = setup()  # by the session that is kept
    assert [ENDPOINT in each.stdout and "spread" in each.stdout for each in (done, shown)] == [
        True,
        True,
    ]
    changed = setup(f"{ENDPOINT}/2")
    assert "stays the one that came first" in changed.stdout
    assert f"{ENDPOINT}/2" in changed.stdout
    assert "spread, splash, funding" in changed.stdout
    assert "no webhook is set" in setup("--remove").stdout
    assert (workdir / "rail-webhook.secret").read_text().strip() == secret


def test_a_test_is_delivered_signed_with_the_secret_of_the_file(
    setup: Rail, workdir: Path, receiver: Receiver
) -> None:
    done = setup(f"http://{receiver.address}/", *SIGNING_IN, "--test")
    assert "a test was taken: status 204" in done.stdout
    ((headers, body),) = receiver.came
    secret = (workdir / "rail-webhook.secret").read_text().strip()
    assert Webhook(secret).verify(body, headers)["type"] == "webhook.test"


def test_where_a_secret_would_come_its_file_must_be_new(setup: Rail, workdir: Path) -> None:
    (workdir / "rail-webhook.secret").write_text("of another service\n")
    line = refused(setup(ENDPOINT, *SIGNING_IN))
    assert "a file that is not there yet" in line
    assert "no webhook is set" in setup().stdout
    assert (workdir / "rail-webhook.secret").read_text() == "of another service\n"


def test_a_plan_without_webhooks_is_refused_with_what_the_service_says(setup: Rail) -> None:
    line = refused(setup(ENDPOINT, *SIGNING_IN, owner="demo-free"))
    assert "(403)" in line
    assert "lowest plan with webhooks is builder" in line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--session"),
        ((ENDPOINT, "--code-env", "RAIL_NONE"), "--code-env"),
        ((ENDPOINT, "--cookie-env", "RAIL_NONE"), "--cookie-env"),
        ((*SIGNING_IN, "--cookie-env", "RAIL_CODE"), "--cookie-env"),
        ((ENDPOINT, "--remove"), "--remove"),
        (("--family", "spread"), "--family"),
        (("http://hooks.example/", *SIGNING_IN), "url: is not allowed"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    setup: Rail, arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(setup(*arguments))


def test_a_session_that_is_none_is_refused_and_shown_nowhere(local: str) -> None:
    with WebhookSession(local, cookie="rail_session=sekrit-0815") as session:
        with pytest.raises(KeyRefusedError, match="sign in anew") as error:
            session.endpoint()
        with pytest.raises(KeyRefusedError, match="The code is not valid") as wrong:
            session.sign_in("sekrit-0816")
        assert "sekrit" not in str(error.value) + str(wrong.value) + repr(session)


def test_a_service_that_is_not_there_is_named() -> None:
    with (
        WebhookSession("http://127.0.0.1:9") as session,
        pytest.raises(UnreachableError, match=r"no answer from http://127.0.0.1:9"),
    ):
        session.endpoint()
