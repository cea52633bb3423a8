"""The script that Streamlit runs for each viewer at each change: the stage first, then the chosen page below it.

The stage is mounted once, before the page runs, at a fixed place and with a fixed key: so it plays on across pages and
is never rebuilt. It fetches its events itself; this script only says which run is on it. What follows a click on the
stage is in ``ui.actions``. Nothing here loops, sleeps or draws a chart.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui import selection, simulator
from ui.chapters import claims, home, lesson, method, recordings, simulate, whatif
from ui.panels import density, problem, stage

# Emoji and Material page icons are fetched from another host; a file is not.
ICON = Path(__file__).resolve().parent.parent / "assets" / "icon.svg"
# Streamlit leaves room for a title above and wide margins; the stage wants both.
CLOSER = ".stMainBlockContainer {padding: 4rem clamp(0.75rem, 3vw, 3rem) 2rem}"
# On the other pages the stage stands below what the page is about; moving it in the tree would build it anew.
BELOW = (
    "[data-testid=stLayoutWrapper]:has(> .st-key-stage_place) {order: 1}"
    f"[data-testid=stLayoutWrapper]:has(> .st-key-{simulate.BELOW_STAGE}) {{order: 2}}"
)
# A problem's sentence in the colour of a problem, legible on light and on dark ground.
PROBLEMS = f"[class*=st-key-{problem.KEY}] * {{color: light-dark(#b3261e, #f2b8b5) !important; font-size: 0.9rem}}"

st.set_page_config(page_title="SiliconScope", page_icon=str(ICON), layout="wide")


def list_recordings() -> None:
    """The list, which leads back to the stage."""
    recordings.page(stage_page)


def list_claims() -> None:
    """The claims, which lead to the simulator."""
    claims.page(simulate_page)


simulate_page = st.Page(simulate.page, title="Simulate", url_path="simulate")
stage_page = st.Page(home.page, title="The stage", url_path="stage", default=True)
page = st.navigation(
    [
        stage_page,
        st.Page(lesson.page, title="Lesson", url_path="lesson"),
        simulate_page,
        st.Page(whatif.page, title="What if", url_path="what-if"),
        st.Page(list_claims, title="Claims", url_path="claims"),
        st.Page(list_recordings, title="Recordings", url_path="recordings"),
        st.Page(method.page, title="How these figures are made", url_path="method"),
    ],
    position="top",
)
if page == simulate_page:
    simulator.enter()
st.html(f"<style>{CLOSER} {PROBLEMS} {'' if page == stage_page else BELOW}</style>")
with st.container(key="stage_place"):
    place = st.container()
    shown = selection.shown()
    chosen = density.switch() if shown.beside is None else density.alone()
    with place:
        stage.mount(shown, chosen)
page.run()
