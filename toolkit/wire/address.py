"""Check of a service's address, and of sending the key there."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from toolkit.errors import InputError


def base_address(text: str) -> str:
    """Check an address and strip its last slash.

    Raises `InputError` unless it is http(s)://host without a user name, password or query, which
    would end up in logs.

    >>> base_address("http://127.0.0.1:8750/")
    'http://127.0.0.1:8750'
    """
    allowed = "http://HOST[:PORT] or https://HOST[:PORT], with nothing secret in it"
    if not isinstance(text, str):
        raise InputError("base_url", text, allowed)
    if not {"@", "?", "#"}.isdisjoint(text):
        raise InputError("base_url", "***", allowed)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isprintable() or " " in text:
        raise InputError("base_url", text, allowed)
    return text.rstrip("/")


def is_loopback(host: str | None) -> bool:
    """Check that a host is this machine: 127.0.0.0/8, ::1, localhost, or a name below localhost.

    >>> [is_loopback(host) for host in ("127.0.0.2", "::1", "a.localhost", "10.0.0.1", None)]
    [True, True, True, False, False]
    """
    name = (host or "").lower().removesuffix(".")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def sends_key_in_clear(address: str, *, allow_http: bool) -> bool:
    """Return whether the key would be sent unencrypted over a network. `InputError` if not allowed.

    >>> sends_key_in_clear("http://127.0.0.1:8700", allow_http=False)
    False
    >>> sends_key_in_clear("http://rail.example", allow_http=False)
    Traceback (most recent call last):
    toolkit.errors.InputError: base_url: 'http://rail.example' is not allowed; allowed: https://...
    """
    parts = urlsplit(address)
    if parts.scheme == "https" or is_loopback(parts.hostname):
        return False
    if not allow_http:
        raise InputError(
            "base_url",
            address,
            "https://HOST[:PORT], or http:// to this machine: http sends the key unencrypted",
            advice="use https; where the way is safe, allow http with allow_http=True, "
            "--allow-http or RAIL_ALLOW_HTTP=1",
        )
    return True
