"""What `rail webhook` refuses before it listens."""

from __future__ import annotations

import socket

import pytest

from .conftest import Rail, refused

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HELD_BY = ("--secret-env", "RAIL_WEBHOOK_SECRET")


def test_without_a_secret_it_does_not_start(rail: Rail) -> None:
    done = rail("webhook")

    assert done.returncode == 2
    assert "--secret-env" in done.stderr


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_variable_that_holds_no_secret_is_refused(rail: Rail, value: str | None) -> None:
    settings = {} if value is None else {"webhook_secret": value}

    line = refused(rail("webhook", *HELD_BY, **settings))

    assert "RAIL_WEBHOOK_SECRET" in line
    assert "a variable that is set" in line


@pytest.mark.usefixtures("held")
def test_a_secret_that_is_none_is_refused_and_not_shown(rail: Rail) -> None:
    line = refused(rail("webhook", *HELD_BY, webhook_secret="not-a-secret-at-all!"))

    assert "not-a-secret-at-all" not in line


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("option", [("--signed", "{timestamp}.{body}"), ("--encoding", "base64")])
def test_a_form_of_signature_without_its_header_is_refused(
    rail: Rail, option: tuple[str, str]
) -> None:
    line = refused(rail("webhook", *HELD_BY, *option, webhook_secret=SECRET))

    assert "--header" in line
    assert SECRET not in line


def test_without_a_store_and_without_a_service_it_is_refused(rail: Rail) -> None:
    line = refused(rail("webhook", *HELD_BY, "--port", "0", webhook_secret=SECRET))

    assert "rail.duckdb" in line
    assert SECRET not in line


@pytest.mark.usefixtures("held")
def test_a_port_that_is_taken_is_refused(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused(rail("webhook", *HELD_BY, "--port", port, webhook_secret=SECRET))

    assert "a free port" in line
