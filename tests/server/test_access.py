"""Who may talk to the server: foreign hosts, foreign pages, and the ways to spell our own name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from server.access import allowed_names, is_loopback, parse_host

FOREIGN_HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:80",
    "localhost@evil.example",
    "localhost:80@evil.example",
    "localhost/evil.example",
    "127.0.0.2",
    "0.0.0.0",
    "[::2]",
    "localhost:port",
    "localhost:99999",
    "",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_misdirected(shared_site: Any, host: str) -> None:
    answer = httpx.get(f"{shared_site.url}/api/traces", headers={"Host": host})
    assert answer.status_code in (400, 421) and "[" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]", "lab.example"])
@pytest.mark.parametrize("port", ["", ":8501"])
def test_our_own_names_are_served_whatever_the_port(shared_site: Any, host: str, port: str) -> None:
    assert httpx.get(f"{shared_site.url}/api/traces", headers={"Host": host + port}).status_code == 200


def test_two_hosts_are_none(shared_site: Any) -> None:
    with socket.create_connection(("127.0.0.1", shared_site.port), 5) as line:
        line.sendall(b"GET /api/traces HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert line.recv(100).split()[1] in (b"400", b"421")


FOREIGN_ORIGINS = [
    None,
    "null",
    "http://evil.example",
    "http://localhost.evil.example",
    "http://127.0.0.1:1",  # another server on this machine
    "http://127.0.0.1",
    "http://localhost:{port}",  # a page of this machine, but of another origin than the socket's host
    "https://127.0.0.1",
    "file://127.0.0.1:{port}",
    "127.0.0.1:{port}",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@evil.example",
]


def _status(shared_site: Any, path: str, **headers: str | None) -> int:
    """The handshake's status: 101 when the socket opens."""

    async def dial() -> int:
        named = {key.capitalize(): value for key, value in headers.items() if value is not None}
        try:
            async with connect(f"{shared_site.ws}{path}", additional_headers=named, proxy=None):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    return asyncio.run(dial())


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_socket_or_a_post_from_elsewhere_is_refused(shared_site: Any, origin: str | None) -> None:
    filled = origin and origin.format(port=shared_site.port)
    assert _status(shared_site, "/api/status", origin=filled) == 403
    headers = {"Origin": filled} if filled else {}
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert httpx.request(method, f"{shared_site.url}/api/traces", headers=headers).status_code == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "http://lab.example", "https://lab.example:444"])
def test_our_own_page_and_the_operators_names_are_let_in(shared_site: Any, origin: str) -> None:
    filled = origin.format(port=shared_site.port)
    assert _status(shared_site, "/api/status", origin=filled) == 101
    answer = httpx.post(f"{shared_site.url}/api/traces", headers={"Origin": filled})
    assert answer.status_code == 405  # past the door, and nothing there takes a POST


def test_a_rebound_name_gets_no_socket_either(shared_site: Any) -> None:
    async def dial() -> int:
        address = f"ws://evil.example:{shared_site.port}/api/status"
        origin = f"http://evil.example:{shared_site.port}"
        try:
            async with connect(address, origin=origin, host="127.0.0.1", port=shared_site.port, proxy=None):  # type: ignore[arg-type]
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    assert asyncio.run(dial()) == 421


def test_the_operators_list() -> None:
    assert allowed_names("0.0.0.0", " demo.example , http.example:8080,fd00::7,") >= {
        "0.0.0.0",
        "demo.example",
        "http.example",
        "fd00::7",
        "localhost",
    }
    assert allowed_names(None, None) == {"localhost", "127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("Localhost:1", ("localhost", 1)),
        ("[::1]:2", ("::1", 2)),
        ("[::1]", ("::1", None)),
        ("a/b", None),
        ("a?b", None),
    ],
)
def test_parse_host(value: str, host: tuple[str, int | None] | None) -> None:
    assert parse_host(value) == host


@pytest.mark.parametrize(
    ("address", "host", "local"),
    [
        ("127.0.0.1", "localhost:8501", True),
        ("127.8.9.1", "127.0.0.1", True),
        ("::1", "[::1]:8501", True),
        ("::ffff:127.0.0.1", "localhost", True),
        (None, "localhost", True),
        ("10.0.0.7", "localhost", False),
        ("127.0.0.1", "lab.example", False),
        ("nonsense", "localhost", False),
        ("127.0.0.1", None, False),
    ],
)
def test_who_sits_at_this_machine(address: str | None, host: str | None, local: bool) -> None:
    assert is_loopback(address, host) is local
