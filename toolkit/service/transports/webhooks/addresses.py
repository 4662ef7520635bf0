"""Addresses of deliveries: https to public ones, and to loopback ones if that is allowed.

A name is checked by the addresses that it resolves to when connecting, and by the address of the
connection, since the owner of a name can change its addresses at any time.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolkit.errors import InputError

_LONGEST_URL = 2048
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = [ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32")]


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an endpoint's URL that a request needs. The repr does not show the path."""

    encrypted: bool
    host: str
    port: int
    authority: str
    resource: str

    def __repr__(self) -> str:
        return f"Target({self.authority!r})"


def target_of(url: str, *, loopback: bool) -> Target:
    """Return the target of a URL. One that no delivery may go to is an `InputError`.

    The error does not show the URL, since it may contain a secret.
    With ``loopback``, http is allowed to ``localhost`` and to loopback addresses.

    >>> target_of("http://127.0.0.1:8800/", loopback=True).port
    8800
    >>> target_of("https://10.0.0.1/", loopback=True)
    Traceback (most recent call last):
    toolkit.errors.InputError: url: '***' is not allowed; allowed: https://HOST...
    """
    allowed = "https://HOST[:PORT][/PATH] at a public address, without user name or fragment"
    if loopback:
        allowed += ", or http to this machine"
    refusal = InputError("url", "***", allowed)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise refusal from None
    plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= _LONGEST_URL
    odd = "@" in parts.netloc or "#" in url or "\\" in url or port == 0 or not host
    if not plain or odd or parts.scheme not in ("https", "http"):
        raise refusal
    address = _address(host)
    here = host == "localhost" or (address is not None and address.is_loopback)
    if parts.scheme == "http" and not (loopback and here):
        raise refusal
    if address is not None and not may_reach(host, loopback=loopback):
        raise refusal
    encrypted = parts.scheme == "https"
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(encrypted, host, port or (443 if encrypted else 80), parts.netloc, resource)


def may_reach(address: str, *, loopback: bool) -> bool:
    """Return whether a delivery may be made to an IP address, as the system writes it.

    Only public unicast addresses are allowed, and with ``loopback`` loopback ones. An IPv6 address
    that maps an IPv4 one is checked as that. Tunnels into IPv4 are refused.

    >>> [may_reach(a, loopback=False) for a in ("93.184.216.34", "10.0.0.1", "::ffff:10.0.0.1")]
    [True, False, False]
    """
    found = _address(address)
    if found is None:
        return False
    if found.is_loopback:
        return loopback
    if found.version == 6 and found not in _GLOBAL_UNICAST:
        return False
    if any(found in tunnel for tunnel in _TUNNELS):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
