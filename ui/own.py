"""A person's own devices and models: kept in their browser and their address, and in no file of the server.

The text is the JSON that ``sim.catalog_file`` reads, so the address can also be handed to the command line as a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

import server
from sim.catalog_file import OwnCatalog, parse_catalog

KEY = "sim_own"
CHANGED = "sim_own_changed"
COMPONENT = "own_keeper"
LONGEST = 20_000  # characters of an address


def text() -> str:
    """The own devices and models as JSON, as the address holds them; empty where there are none."""
    kept: str = st.session_state.get(KEY, "")
    return kept


def catalog() -> OwnCatalog:
    """The own devices and models; none where their text cannot be read (``problem`` says why)."""
    try:
        return _parsed(text())
    except (ValueError, LookupError):
        return OwnCatalog()


def problem() -> str | None:
    """Why the own devices and models cannot be read."""
    try:
        _parsed(text())
    except (ValueError, LookupError) as error:
        return str(error.args[0])
    return None


def add(kind: str, fields: Mapping[str, object]) -> None:
    """Keep one more device or model ("devices", "models"), in place of one of the same name.

    Raises ValueError with one sentence for fields that make none, and for more than an address can hold.
    """
    held = _held()
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    others = [row for row in held.get(kind, ()) if row.get("name") != given.get("name")]
    more = json.dumps(held | {kind: [*others, given]}, ensure_ascii=False, separators=(",", ":"))
    if len(more) > LONGEST:
        raise ValueError("That is more than an address can hold; forget the others first.")
    _parsed(more)
    st.session_state[KEY] = more
    st.session_state[CHANGED] = True


def forget() -> None:
    """Let go of all own devices and models."""
    st.session_state[KEY] = ""
    st.session_state[CHANGED] = True


def mount() -> None:
    """Have the browser keep what was added here, and bring back what it keeps (assets/stage/own.js)."""
    loader = (
        f"const own = await import(new URL('stage/{server.stage_digest()}/own.js', document.baseURI));\n"
        "export default own.default;\n"
    )
    component = st.components.v2.component("own", html="<span></span>", js=loader)
    data = {"own": text(), "changed": bool(st.session_state.get(CHANGED))}
    component(key=COMPONENT, data=data, on_own_change=_bring_back)


def _bring_back() -> None:
    """What the browser kept, on a visit whose address has none."""
    kept = (st.session_state.get(COMPONENT) or {}).get("own")
    if not isinstance(kept, str) or not kept or text():
        return
    try:
        _parsed(kept)
    except (ValueError, LookupError):
        return  # kept by another version, or not by us
    st.session_state[KEY] = kept


def _held() -> dict[str, Any]:
    """What there is so far, by kind; nothing where an address held something else."""
    if problem() is not None or not text().startswith("{"):
        return {}
    return {kind: rows for kind, rows in json.loads(text()).items() if kind in ("devices", "models")}


def _parsed(said: str) -> OwnCatalog:
    if not said:
        return OwnCatalog()
    if len(said) > LONGEST:
        raise ValueError(f"Own devices and models take at most {LONGEST:,} characters in an address.")
    return parse_catalog(said, "")
