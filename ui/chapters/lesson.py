"""The lesson's page: which chapter, its words with figures of the run at hand, and its panel beside them.

The address says the chapter (``?chapter=prefill``) and the session remembers it. A panel is a fragment, so a slider
redraws it and nothing else.
"""

from __future__ import annotations

import streamlit as st

from ui import actions
from ui.chapters.simulate import BELOW_STAGE
from ui.lessons import drawn, ground
from ui.lessons.chapters import CHAPTERS, Chapter
from ui.lessons.ground import Ground
from ui.lessons.text import fill, glossary, phrase, with_definitions
from ui.panels import present

KEY = "lesson_chapter"
# While a guess is open, the stage would tell the answer.
HIDDEN = "<style>.st-key-stage_place {display: none}</style>"


def page() -> None:
    """Draws the chapter."""
    chapter, strange = chosen()
    facts = ground.current()
    st.html(drawn.styles())
    with st.container(key="lesson_page"):
        _navigation(chapter)
        if strange:
            st.text(phrase("page.unknown"))
        _chapter(chapter, facts)
    deeper = None if _is_asking(chapter) else chapter.text.sections.get("deeper")
    with st.container(key=BELOW_STAGE):
        if deeper:
            st.subheader(phrase("page.deeper"))
            _words("deeper", fill(deeper, chapter.figures(facts)))
        st.text(_whose(facts))


def chosen() -> tuple[Chapter, bool]:
    """The chapter of the session or of the address, and whether the address named one that is not there: said once."""
    by_slug = {chapter.slug: chapter for chapter in CHAPTERS}
    asked: str | None = st.query_params.get("chapter") if KEY not in st.session_state else None
    strange = asked is not None and asked not in by_slug
    slug = st.session_state.setdefault(KEY, asked if asked in by_slug else CHAPTERS[0].slug)
    if st.query_params.get("chapter") != slug:
        st.query_params["chapter"] = slug
    return by_slug[slug], strange


def go(slug: str) -> None:
    """Turn to a chapter, as in a callback."""
    st.session_state[KEY] = slug


def turn() -> None:
    """As in a callback: the chapter that the stage's keys asked for, in presenter mode."""
    before, after = neighbours(chosen()[0])
    to = {1: after, -1: before}.get(actions.stepped())
    if to is not None:
        go(to.slug)


def on_stage() -> bool:
    """Whether the chapter that is about to be drawn has the stage for its figure."""
    slug = st.session_state.get(KEY) or st.query_params.get("chapter")
    return any(chapter.slug == slug and chapter.on_stage for chapter in CHAPTERS)


def neighbours(chapter: Chapter) -> tuple[Chapter | None, Chapter | None]:
    """The chapter before and the one after."""
    at = CHAPTERS.index(chapter)
    return (CHAPTERS[at - 1] if at else None), (CHAPTERS[at + 1] if at + 1 < len(CHAPTERS) else None)


def _navigation(chapter: Chapter) -> None:
    titles = {one.slug: f"{n}. {one.title}" for n, one in enumerate(CHAPTERS, 1)}
    before, after = neighbours(chapter)
    with st.container(horizontal=True, key="lesson_navigation", vertical_alignment="center"):
        _turn("previous", before, ":material/arrow_back:")
        st.selectbox(
            phrase("page.chapter"),
            list(titles),
            format_func=titles.__getitem__,
            key=KEY,
            persist_state="session",
            label_visibility="collapsed",
        )
        _turn("next", after, ":material/arrow_forward:")
        present.button("present_lesson")
        with st.popover(phrase("page.glossary")):
            for term, meaning in glossary().items():
                st.markdown(f"**{term}**: {meaning}")


def _turn(name: str, to: Chapter | None, icon: str) -> None:
    st.button(
        phrase(f"page.{name}"),
        icon=icon,
        key=f"lesson_{name}",
        disabled=to is None,
        on_click=go,
        args=(to.slug if to else "",),
    )


def _chapter(chapter: Chapter, facts: Ground) -> None:
    sections, figures = chapter.text.sections, chapter.figures(facts)
    if chapter.guess is not None and chapter.guess.is_open():
        st.html(HIDDEN)
        _verdict(fill(sections["lead"], figures))
        chapter.guess.draw(fill(sections["question"], figures))
        chapter.guess.draw_way_past()
        return
    _verdict(fill(sections["verdict"], figures))
    if chapter.on_stage:
        chapter.panel(facts)
        return
    left, right = st.columns([2, 3], gap="medium")
    with left:
        if chapter.guess is not None and not chapter.guess.is_passed():
            chapter.guess.draw(fill(sections["question"], figures))
        _words("words", fill(sections["words"], figures))
    with right:
        st.fragment(chapter.panel)(facts)


def _is_asking(chapter: Chapter) -> bool:
    """Whether the learner is to guess before anything is told."""
    return chapter.guess is not None and chapter.guess.is_open()


def _verdict(text: str) -> None:
    with st.container(key="lesson_verdict"):
        st.header(text, anchor=False)


def _words(name: str, text: str) -> None:
    with st.container(key=f"lesson_{name}"):
        st.markdown(with_definitions(text), unsafe_allow_html=True)


def _whose(facts: Ground) -> str:
    """Whose figures these are. Names may be a stranger's, so this is shown as characters."""
    return f"{phrase(f'page.{facts.kind}')}: {' · '.join((facts.title, facts.machine, facts.model, facts.precision))}"
