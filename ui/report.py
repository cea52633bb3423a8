"""One run as one HTML file: its figures, where they come from, and the playable stage with its trace.

The file opens from a disk, with no install and no network. It holds the stage's own modules, not a second stage: an
import map gives each module a ``data:`` address, and the lines of the trace lie in the page. Plotly stays out: even
packed it would make of 0.3 MB a file of 2.2 MB, and the Lesson density would use it for the dials' faces only.

What a model wrote, and what a trace says of itself, may be a stranger's markup. In tables it is escaped; in embedded
JSON every ``<`` is written as ``\\u003c``, so that no text can close its element; and the page's own policy lets only
scripts run whose hashes it names, and nothing be fetched at all. Not covered: dark colours (it is a paper as well), two
runs side by side.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template

from server.files import stage_table
from telemetry.events import Header
from telemetry.summary import summarise
from telemetry.trace import Trace
from ui.chapters import method
from ui.figures import UNKNOWN

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "report"
SOURCES = {
    "live": "Recorded on the machine named here.",
    "remote": "Recorded from a remote engine.",
    "simulated": "Simulated: computed from a description of a device; nothing ran.",
}
LOCAL_IMPORT = re.compile(r'(["\'])\./([\w.-]+)\1')


def page(run_id: str, title: str, lines: Iterable[str], trace: Trace) -> str:
    """The whole file. ``lines`` are the trace's own, header first; ``trace`` is what the reader made of them."""
    modules = json.dumps({"imports": _modules()})
    boot = _bare((FOLDER / "boot.js").read_text(encoding="utf-8"))
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        policy=_policy(modules, boot),
        title=html.escape(title),
        facts=html.escape(_facts(trace)),
        modules=modules,
        boot=boot,
        run=_harmless(json.dumps({"id": run_id, "title": title})),
        trace=_harmless("\n".join(lines) + "\n"),
        tables=_tables(trace),
    )


def file_name(run_id: str) -> str:
    """What the browser calls the file when it keeps it."""
    return f"siliconscope-{re.sub(r'[^A-Za-z0-9._-]', '-', run_id)}.html"


def _modules() -> dict[str, str]:
    """The stage's files by bare name. A relative import means nothing inside a ``data:`` address; a bare one does."""
    found = {}
    for name, held in stage_table().files.items():
        body = _bare(held.body.decode()).encode() if name.endswith(".js") else held.body
        kind = held.content_type.replace(" ", "")
        found[f"stage/{name}"] = f"data:{kind};base64,{base64.b64encode(body).decode()}"
    return found


def _bare(source: str) -> str:
    return LOCAL_IMPORT.sub(r"\1stage/\2\1", source)


def _policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    rules = (
        "default-src 'none'",
        f"script-src {allowed} data:",
        "style-src 'unsafe-inline' data:",
        "img-src data:",
        "connect-src blob:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _harmless(text: str) -> str:
    """JSON in which no character can end its element; ``<`` stands in JSON inside strings only."""
    return text.replace("<", "\\u003c")


def _facts(trace: Trace) -> str:
    header = trace.header
    machine = ", ".join(device.name for device in header.devices) or "a machine that is not named"
    model = str(header.model.get("name") or "a model")
    parts = [SOURCES.get(header.source, header.source), f"{machine} · {model}, {header.precision} · {header.created}."]
    return " ".join([*parts, _engine(header), *trace.notes]).strip()


def _engine(header: Header) -> str:
    named = [str(header.engine[key]) for key in ("name", "version") if header.engine.get(key)]
    return f"Engine: {' '.join(named)}." if named else ""


def _tables(trace: Trace) -> str:
    left = _table("The figures of this run", method.sums(summarise(trace)))
    right = _table("What a percentage is a percentage of", method.ceilings(trace.header))
    right += _table("What was read while it ran", method.sensors(trace.header))
    return f'<div class="tables"><div>{left}</div><div>{right}</div></div>'


def _table(title: str, rows: list[dict[str, str]]) -> str:
    if not rows:
        return f"<h2>{html.escape(title)}</h2><p>{UNKNOWN}</p>"
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in rows[0])
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<h2>{html.escape(title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Mapping[str, str]) -> str:
    return "".join(f"<td>{html.escape(value)}</td>" for value in row.values())
