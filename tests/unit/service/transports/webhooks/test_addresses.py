"""Where deliveries may go."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.service.transports.webhooks.addresses import may_reach, target_of

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:93.184.216.34"]
LOOPBACK = ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"]
PRIVATE = [
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1"),
    *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "2002:a00:1::1"),
    *("2001::a00:1", "::a00:1", "not an address", "", "127.1", "2130706433", "0x7f000001"),
]


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("loopback", [False, True])
def test_public_addresses_may_be_reached(address: str, *, loopback: bool) -> None:
    assert may_reach(address, loopback=loopback)


@pytest.mark.parametrize("address", LOOPBACK)
@pytest.mark.parametrize("loopback", [False, True])
def test_loopback_addresses_may_be_reached_where_that_is_allowed(
    address: str, *, loopback: bool
) -> None:
    assert may_reach(address, loopback=loopback) is loopback


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("loopback", [False, True])
def test_no_other_address_may_be_reached(address: str, *, loopback: bool) -> None:
    assert not may_reach(address, loopback=loopback)


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
def test_https_to_a_name_or_a_public_address_is_a_target(
    url: str, authority: str, resource: str
) -> None:
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
