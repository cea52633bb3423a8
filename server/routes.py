"""Our routes beside Streamlit's: the stage's files, plotly.js, traces, and the two websockets.

All GETs read only. Everything under our prefixes that does not exist answers 404 here, since Streamlit answers any
unknown path with its page and status 200. Starting, stopping and uploading go through the page's script, not here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import server
from server.files import HeldFile, Table, plotly_table, stage_table
from server.hub import LINES_PER_MESSAGE
from server.status import encode_status
from server.store import SUFFIX

IMMUTABLE = "public, max-age=31536000, immutable"
TRACE_TYPE = "application/x-ndjson; charset=utf-8"
DONE = 1000
BAD_REQUEST = 4400
UNKNOWN_RUN = 4404
REASON_LIMIT_BYTES = 120  # a close frame holds 123

Farewell = tuple[int, str]
"""The code and the sentence with which a socket is closed."""


def routes(base: str = "") -> list[BaseRoute]:
    """Our routes under ``base``, the server's configured path prefix (Streamlit adds none to ours)."""
    prefix = "/" + base.strip("/") if base.strip("/") else ""
    return [
        Route(f"{prefix}/stage/{{digest}}/{{name:path}}", _stage_file),
        Route(f"{prefix}/plotly/{{digest}}/{{name:path}}", _plotly_file),
        Route(f"{prefix}/api/traces", _traces),
        Route(f"{prefix}/api/traces/{{name}}", _trace),
        WebSocketRoute(f"{prefix}/api/run", _run_socket),
        WebSocketRoute(f"{prefix}/api/status", _status_socket),
        *(Route(f"{prefix}/{folder}{{rest:path}}", _missing) for folder in ("stage", "plotly", "api")),
        WebSocketRoute(f"{prefix}/api/{{rest:path}}", _unknown_socket),
    ]


async def _missing(request: Request) -> Response:
    return PlainTextResponse("There is nothing at this address.\n", 404)


async def _stage_file(request: Request) -> Response:
    return await _held(request, stage_table())


async def _plotly_file(request: Request) -> Response:
    return await _held(request, plotly_table())


async def _held(request: Request, table: Table) -> Response:
    held = table.files.get(request.path_params["name"])
    if held is None or request.path_params["digest"] != table.digest:
        return await _missing(request)
    return _file_response(request, held, f'"{table.digest}"')


def _file_response(request: Request, held: HeldFile, etag: str) -> Response:
    headers = {
        "ETag": etag,
        "Cache-Control": IMMUTABLE,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    if held.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(held.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=held.content_type)
    return Response(held.body, headers=headers, media_type=held.content_type)


async def _traces(request: Request) -> Response:
    recordings = await asyncio.to_thread(server.current().recordings)
    return JSONResponse([dataclasses.asdict(r) for r in recordings], headers={"Cache-Control": "no-store"})


async def _trace(request: Request) -> Response:
    """A trace's lines; of a run that goes on, those that came so far. Compression is Streamlit's middleware's work."""
    recording_id = request.path_params["name"].removesuffix(SUFFIX)
    headers = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    if request.query_params.get("download"):
        headers["Content-Disposition"] = f'attachment; filename="siliconscope-{recording_id}{SUFFIX}"'
    runs = server.current().runs
    channel = runs.hub.get(recording_id)
    if channel is not None:
        return Response(channel.text(), media_type=TRACE_TYPE, headers=headers)
    try:
        path = runs.store.path(recording_id)
        stat = path.stat()
    except (LookupError, FileNotFoundError):
        return await _missing(request)
    response = FileResponse(path, media_type=TRACE_TYPE, headers=headers, stat_result=stat)
    if request.headers.get("if-none-match") == response.headers["etag"]:
        return Response(status_code=304, headers=headers | {"ETag": response.headers["etag"]})
    return response


async def _unknown_socket(socket: WebSocket) -> None:
    async def pump() -> Farewell:
        return UNKNOWN_RUN, "There is nothing at this address."

    await _serve(socket, pump)


async def _run_socket(socket: WebSocket) -> None:
    """``?run=ID&from=N``: whole lines from event N on (0: the header too), then live ones until the run is over."""
    run_id = socket.query_params.get("run", "")
    first = socket.query_params.get("from", "0")

    async def pump() -> Farewell:
        if not (first.isascii() and first.isdigit() and len(first) < 10):
            return BAD_REQUEST, "from is not an ordinal."
        position = int(first) + 1 if int(first) else 0  # the header stands ahead of event 0
        runs = server.current().runs
        channel = runs.hub.get(run_id)
        try:
            messages = channel.follow(position) if channel else _stored(runs.store.lines(run_id), position)
            async for message in messages:
                await socket.send_text(message)
        except LookupError as error:
            return UNKNOWN_RUN, str(error.args[0])
        if channel is not None and channel.problem is not None:
            return UNKNOWN_RUN, channel.problem
        return DONE, ""

    await _serve(socket, pump)


async def _status_socket(socket: WebSocket) -> None:
    """The status at connect, then each time it has changed."""
    desk = server.current()

    async def pump() -> Farewell:
        said = None
        while True:
            changed = desk.bell.next()
            line = encode_status(desk.status())
            if line != said:
                await socket.send_text(line)
                said = line
            await changed.wait()

    await _serve(socket, pump)


async def _stored(lines: Iterator[str], position: int) -> AsyncIterator[str]:
    rest = itertools.islice(lines, position, None)
    while chunk := await asyncio.to_thread(lambda: list(itertools.islice(rest, LINES_PER_MESSAGE))):
        yield "\n".join(chunk)


async def _serve(socket: WebSocket, pump: Callable[[], Awaitable[Farewell]]) -> None:
    """Open the socket, run ``pump`` until it returns or the viewer leaves, and say its farewell.

    A viewer may leave at any moment, also before it was answered; that is never an error. Refusals open the socket
    first as well, since a refused handshake would reach the page as 1006 without a reason.
    """
    try:
        await socket.accept()
    except OSError:  # gone already
        return
    sending = asyncio.ensure_future(pump())
    leaving = asyncio.ensure_future(_left(socket))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            code, sentence = sending.result()
            await socket.close(code, sentence.encode()[:REASON_LIMIT_BYTES].decode(errors="ignore"))
    except WebSocketDisconnect:
        pass  # gone while something was on its way
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _left(socket: WebSocket) -> None:
    """Returns when the viewer has gone; what it says meanwhile is not listened to."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
