"""Where webhooks may go: names that an administrator allowed, and no private address unless its network was named.

A name is looked up once for each attempt, and the connection goes to the address that was checked: a name that changes
its mind in between leads nowhere else.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST_URL = 2000
_PROVIDERS = ipaddress.IPv6Network("2000::/3")
_GATEWAY = ipaddress.IPv6Network("64:ff9b::/96")


class TargetRefusedError(Exception):
    """The target may not be reached from here; the text says why."""


@dataclass(frozen=True)
class WebhookTarget:
    """A URL whose host may be named. `address` is where its connection goes."""

    url: httpx.URL
    address: Address

    @property
    def url_of_address(self) -> httpx.URL:
        return self.url.copy_with(host=str(self.address))


def check_name(url: str, allowed: Sequence[str]) -> httpx.URL:
    """What can be said of a target without looking its name up."""
    try:
        parsed = httpx.URL(url) if len(url) <= _LONGEST_URL and url.isprintable() else None
        named = bool(parsed and parsed.host)  # here a name of letters in disguise (xn--) is read
    except (httpx.InvalidURL, ValueError):
        parsed, named = None, False
    if parsed is None or parsed.scheme not in ("http", "https") or not named:
        raise TargetRefusedError("it is no address: write https://HOST/PATH")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise TargetRefusedError(f"{parsed.port} is no port")
    if parsed.userinfo or parsed.fragment:
        raise TargetRefusedError("it must hold no user, password or fragment")
    if not allowed:
        raise TargetRefusedError("this service sends to nobody: its PENSTOCK_WEBHOOK_TARGETS names no targets")
    literal = _literal(parsed.host)
    if literal is not None:
        _check_address(literal, allowed, named="*" in allowed)
    elif not any(_matches(parsed.host, pattern) for pattern in allowed):
        raise TargetRefusedError(f"{parsed.host} is not among the targets that this service allows")
    if parsed.scheme == "http" and not _inside(literal, allowed):
        raise TargetRefusedError("plain http is for addresses of a network that is allowed by number; use https")
    return parsed


def resolve(url: str, allowed: Sequence[str]) -> WebhookTarget:
    """The target with the address to connect to, if that may be reached."""
    parsed = check_name(url, allowed)
    literal = _literal(parsed.host)
    if literal is not None:
        return WebhookTarget(parsed, literal)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parsed.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetRefusedError(f"{parsed.host} cannot be looked up: {error}") from None
    addresses = [_plain(ipaddress.ip_address(str(entry[4][0]).partition("%")[0])) for entry in found]
    for address in addresses:
        _check_address(address, allowed, named=True)
    return WebhookTarget(parsed, addresses[0])


def _check_address(address: Address, allowed: Sequence[str], *, named: bool) -> None:
    if _inside(address, allowed):
        return
    if not _is_public(address):
        raise TargetRefusedError(f"{address} is a private address, and its network is not among the allowed targets")
    if not named:
        raise TargetRefusedError(f"{address} is not among the targets that this service allows")


def _is_public(address: Address) -> bool:
    """Whether everybody may be there. Of IPv6 that is what providers are given, without the forms that lead on to an
    address of IPv4, which may be one of this network's; a gateway's is what it leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    if address in _GATEWAY:
        return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _PROVIDERS and address.is_global and address.sixtofour is None


def _inside(address: Address | None, allowed: Sequence[str]) -> bool:
    if address is None:
        return False
    return any(network is not None and address in network for network in map(_network, allowed))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _literal(host: str) -> Address | None:
    try:
        return _plain(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """IPv4 in IPv6's clothes counts as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _matches(host: str, pattern: str) -> bool:
    host, pattern = host.lower().rstrip("."), pattern.lower()
    return pattern == "*" or host == pattern or (pattern.startswith("*.") and host.endswith(pattern[1:]))
