"""The page's own files, held in memory: the stage's modules and plotly.js, each under a digest in its address.

The address changes with the content, so browsers may keep them for ever. The table is made once, from the files that
lie in assets/stage at start: nothing a viewer sends is ever joined to a path. plotly.js is what the plotly package
ships, compressed once; Streamlit's own static serving would compress it anew for each viewer.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STAGE_FOLDER = Path(__file__).parent.parent / "assets" / "stage"
PLOTLY_NAME = "plotly.min.js"
CONTENT_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One file in memory. ``packed`` is its gzip form, or None where packing does not pay."""

    body: bytes
    content_type: str
    packed: bytes | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Files by their name inside the folder, and the digest over all of them."""

    digest: str
    files: dict[str, HeldFile]


def read_table(folder: Path) -> Table:
    """Every file of ``folder`` whose type is known, with one digest over names and contents."""
    files = {
        path.relative_to(folder).as_posix(): _hold(path.read_bytes(), CONTENT_TYPES[path.suffix])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in CONTENT_TYPES
    }
    digest = hashlib.sha256()
    for name, held in files.items():
        digest.update(f"{name}\0{len(held.body)}\0".encode() + held.body)
    return Table(digest.hexdigest()[:16], files)


@cache
def stage_table() -> Table:
    """The stage's modules, read once a process."""
    return read_table(STAGE_FOLDER)


@cache
def plotly_table() -> Table:
    """plotly.min.js from the installed plotly package, read and compressed once a process."""
    import plotly

    body = (Path(plotly.__file__).parent / "package_data" / PLOTLY_NAME).read_bytes()
    return Table(hashlib.sha256(body).hexdigest()[:16], {PLOTLY_NAME: _hold(body, CONTENT_TYPES[".js"])})


def stage_digest() -> str:
    """What stands in ``stage/{digest}/…``."""
    return stage_table().digest


def plotly_digest() -> str:
    """What stands in ``plotly/{digest}/plotly.min.js``."""
    return plotly_table().digest


def _hold(body: bytes, content_type: str) -> HeldFile:
    packed = gzip.compress(body, 9, mtime=0)
    return HeldFile(body, content_type, packed if len(packed) < 0.9 * len(body) else None)
