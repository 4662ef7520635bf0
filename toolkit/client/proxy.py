"""The proxy for a service: one for https alone, and none to this machine.

Over https a proxy passes on what it cannot read. Over http it would read the key.
"""

from __future__ import annotations

import os
import urllib.request
from urllib.parse import urlsplit

from toolkit.errors import InputError
from toolkit.wire.address import is_loopback


def proxy_for(base_url: str) -> str | None:
    """Return the proxy of the environment for an address, None for none.

    ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` are read. An address of http or of this machine
    has none. Raises `InputError` for a proxy that is not HTTP, without its password.

    >>> proxy_for("http://127.0.0.1:8700") is None
    True
    """
    parts = urlsplit(base_url)
    if parts.scheme != "https" or is_loopback(parts.hostname):
        return None
    set_to = urllib.request.getproxies()
    proxy, variable = set_to.get("https") or set_to.get("all"), proxy_variable()
    if not proxy or urllib.request.proxy_bypass(parts.netloc):
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        at = urlsplit(url)
        usable = at.scheme in ("http", "https") and at.hostname and at.port != 0 and " " not in url
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            variable,
            "***",
            "http://HOST[:PORT] or https://HOST[:PORT]",
            advice="NO_PROXY names hosts without one",
        )
    return url


def proxy_variable() -> str:
    """Return what names the proxy: a variable of the environment, else the system's settings."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "the system's proxy")
