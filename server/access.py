"""Who may talk to this server: a check of Host and Origin ahead of every route, Streamlit's own included.

The server runs a model for whoever reaches it, usually on a person's own machine. Three things could reach it that
should not: a web page whose name was pointed at 127.0.0.1 (DNS rebinding: its Host is foreign), a web page elsewhere
that opens our websockets or posts to us (its Origin is foreign; a browser always sends one there), and a page of
another local server (its Origin has another port). So Host must be a name this server goes by, and everything but a
plain read must come from a page of that very host. A GET may come without Origin, as browsers send none; therefore no
GET changes anything. Not covered: telling people apart (run keys do that) and encryption (a reverse proxy's work).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
READS = frozenset({"GET", "HEAD"})
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}

_FOREIGN_HOST = (
    "This server does not go by that name. Use localhost, or name the host in SILICONSCOPE_HOSTS where it is started.\n"
)
_FOREIGN_ORIGIN = "This can only be asked from a page of this server.\n"

HostPort = tuple[str, int | None]


def parse_host(value: str) -> HostPort | None:
    """Name in lower case, without brackets, and port of a Host header; None when it is malformed."""
    try:
        parts = urlsplit(f"//{value}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not name or parts.netloc != value or "@" in value or parts.path or parts.query or parts.fragment:
        return None
    return name.rstrip("."), port


def allowed_names(configured: str | None, listed: str | None) -> frozenset[str]:
    """The local names, the address the server was told to listen on, and the operator's comma-separated list."""
    extra = [configured or "", *(listed or "").split(",")]
    parsed = (parse_host(name.strip().rstrip("/")) or parse_host(f"[{name.strip()}]") for name in extra if name.strip())
    return LOCAL_NAMES | {host[0] for host in parsed if host is not None}


def is_loopback(address: str | None, host: str | None) -> bool:
    """Whether a person sits at this machine: the client's address is a loopback one and Host a local name.

    The address alone would not do: behind a reverse proxy on this machine everybody has the proxy's address.
    """
    named = parse_host(host or "")
    if named is None or named[0] not in LOCAL_NAMES:
        return False
    if address in (None, "localhost", "::1"):  # Streamlit gives None for a loopback address
        return True
    try:
        client = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = client.ipv4_mapped if isinstance(client, ipaddress.IPv6Address) else None
    return (mapped or client).is_loopback


class Access:
    """ASGI middleware: 421 for a foreign Host, 403 for a missing or foreign Origin where one is due."""

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = self._host(headers)
        if host is None:
            await _refuse(421, _FOREIGN_HOST, scope, receive, send)
        elif _needs_origin(scope) and not self._from_our_page(headers, host):
            await _refuse(403, _FOREIGN_ORIGIN, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _host(self, headers: Headers) -> HostPort | None:
        values = headers.getlist("host")
        host = parse_host(values[0]) if len(values) == 1 else None
        return host if host is not None and host[0] in self._names else None

    def _from_our_page(self, headers: Headers, host: HostPort) -> bool:
        values = headers.getlist("origin")
        if len(values) != 1:
            return False
        scheme, _, rest = values[0].partition("://")
        origin = parse_host(rest)
        if scheme not in ("http", "https") or origin is None:
            return False
        same_port = (origin[1] or DEFAULT_PORTS[scheme]) == (host[1] or DEFAULT_PORTS[scheme])
        if origin[0] == host[0]:
            return same_port
        # A proxy may rewrite Host to a local name; then the operator's list must know the page's name.
        return origin[0] in self._names - LOCAL_NAMES


def _needs_origin(scope: Scope) -> bool:
    return scope["type"] == "websocket" or scope["method"] not in READS


async def _refuse(status: int, sentence: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await receive()  # the connect message
        await send({"type": "websocket.close", "code": 1008})
        return
    await PlainTextResponse(sentence, status, headers={"Cache-Control": "no-store"})(scope, receive, send)
