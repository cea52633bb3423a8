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
from ui.panels import density, download, present, problem, stage
from ui.panels.present import Presented

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

# Streamlit's own colours miss the contrast of 4.5 in two places: a pale button's words, and captions.
LEGIBLE = """[data-testid=stBaseButton-primary] {color: light-dark(#ffffff, #171614) !important}
:is([data-testid=stCaptionContainer], [data-testid=stCaptionContainer] *)
    {color: light-dark(#5c5b59, #b8b6b2); opacity: 1}
"""

# A long text's table scrolls by itself on a phone; the page never does.
TABLES = "[data-testid=stMarkdownContainer] table {display: block; max-width: 100%; overflow-x: auto}"

st.set_page_config(page_title="SiliconScope", page_icon=str(ICON), layout="wide")


def list_recordings() -> None:
    """The list, which leads back to the stage."""
    recordings.page(stage_page)


def list_claims() -> None:
    """The claims, which lead to the simulator."""
    claims.page(simulate_page)


def presented() -> Presented | None:
    """What presenter mode shows of this page; it knows the stage and the lesson only."""
    if not present.presenting() or page not in (stage_page, lesson_page):
        return None
    return "stage" if page == stage_page or lesson.on_stage() else "chapter"


simulate_page = st.Page(simulate.page, title="Simulate", url_path="simulate")
stage_page = st.Page(home.page, title="The stage", url_path="stage", default=True)
lesson_page = st.Page(lesson.page, title="Lesson", url_path="lesson")
page = st.navigation(
    [
        stage_page,
        lesson_page,
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
density.heed_address()
screen = presented()
above = page == stage_page or screen == "stage"
rules = (CLOSER, PROBLEMS, LEGIBLE, TABLES, "" if above else BELOW, present.styles(screen) if screen else "")
st.html(f"<style>{' '.join(rules)}</style>")
with st.container(key="stage_place"):
    place = st.container()
    shown = selection.shown()
    with st.container(horizontal=True, key="stage_choices"):
        chosen = density.switch() if shown.beside is None else density.alone()
        if page in (stage_page, lesson_page):
            present.button("present_stage")
        download.of_shown(shown)
    with place:
        stage.mount(shown, chosen, screen, lesson.turn if page == lesson_page else stage.stay)
page.run()
