"""A small server of files for the stage outside Streamlit: its modules, the harness page, unit tests, made-up traces.

It knows no websocket; a test that needs one scripts it in the browser.
"""

from __future__ import annotations

import importlib.util
import mimetypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parent.parent.parent.parent
UNIT = Path(__file__).resolve().parent
FOLDERS = {"assets/stage": ROOT / "assets" / "stage", "unit": UNIT}
PLOTLY = importlib.util.find_spec("plotly")
assert PLOTLY is not None and PLOTLY.origin is not None  # its modules are not needed, only the file they ship
FILES = {
    "harness.html": UNIT.parent / "harness.html",
    "plotly/plotly.min.js": Path(PLOTLY.origin).parent / "package_data" / "plotly.min.js",
}


@dataclass(frozen=True, slots=True)
class Site:
    """``traces`` may be added to while it serves: id to text."""

    url: str
    traces: dict[str, str] = field(default_factory=dict)


@contextmanager
def serve_site() -> Iterator[Site]:
    """Serves until the block ends."""
    traces: dict[str, str] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(traces))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Site(f"http://localhost:{server.server_address[1]}/", traces)
    server.shutdown()
    server.server_close()
    thread.join()


def _handler(traces: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.split("?")[0].strip("/")
            body = _body(name, traces)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", mimetypes.guess_type(name)[0] or "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: a test's output is its failures."""

    return Handler


def _body(name: str, traces: Mapping[str, str]) -> bytes | None:
    if name == "favicon.ico":
        return b""
    if name.startswith("api/traces/"):
        text = traces.get(name.removeprefix("api/traces/").removesuffix(".jsonl"))
        return None if text is None else text.encode()
    folder, _, file = name.rpartition("/")
    path = FILES.get(name) or (FOLDERS[folder] / file if folder in FOLDERS else None)
    return path.read_bytes() if path is not None and path.is_file() else None
