"""SiliconScope's server: ``streamlit run app.py``. Wiring only; every room is explained in its own module.

Streamlit serves the page (ui/main.py); beside it stand our routes, behind a check of who asks. The engine runs in a
process of its own, owned by the live source, and everything is closed with the server. From the environment:
SILICONSCOPE_RUNS (where recordings go), SILICONSCOPE_HOSTS (further names of this server), SILICONSCOPE_LIVE=0
(recordings only), SILICONSCOPE_INSTALL=1 (install what live runs need beside the page).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

import server
from server.access import Access, allowed_names
from server.hub import Bell, Hub
from server.routes import routes
from server.runs import Runs
from server.store import Store
from sources.install import Installer
from sources.live import LiveSource, missing_packages
from sources.simulated import SimulatedSource

ROOT = Path(__file__).resolve().parent
STATUS_DELAY_S = 0.1


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    bell = Bell(loop, STATUS_DELAY_S)
    store = Store(Path(os.environ.get("SILICONSCOPE_RUNS") or ROOT / "runs"), ROOT / "assets" / "traces")
    installer = Installer()

    def not_runnable() -> str | None:
        if os.environ.get("SILICONSCOPE_LIVE") == "0":
            return "This server plays recordings only."
        if installer.status().state == "running":
            return "What running on this machine needs is being installed; recordings play meanwhile."
        return missing_packages()

    def installed(_: object) -> None:
        bell.ring()
        live.look_again()

    live = LiveSource(missing=not_runnable)
    installer.on_change = installed
    runs = Runs(store, Hub(loop), bell.ring)
    server.install(server.Server(runs, {"live": live}, bell, installer, SimulatedSource()))
    installer.start()  # first, so that no worker starts in a half-installed environment
    live.open()
    try:
        yield
    finally:
        await asyncio.to_thread(live.close)
        await asyncio.to_thread(installer.close)
        server.install(None)


app = st.App(
    ROOT / "ui" / "main.py",
    routes=routes(st.get_option("server.baseUrlPath")),
    lifespan=lifespan,
    middleware=[
        Middleware(Access, allowed_names(st.get_option("server.address"), os.environ.get("SILICONSCOPE_HOSTS")))
    ],
)
