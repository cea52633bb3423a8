"""The lesson without a browser: every place in every text is filled, every chapter drawn, no figure typed in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest
from streamlit.testing.v1 import AppTest

from server import Server
from server.status import Recording
from sim.scenario import find_scenario
from sim.speculation import expected_tokens
from telemetry.trace import read_trace
from tests.ui.conftest import ROOT, ScriptedSource
from ui.lessons import drawn, ground, text
from ui.lessons.chapters import CHAPTERS, Chapter
from ui.lessons.ground import Ground
from ui.lessons.panels import servers
from ui.selection import OPENING

SHIPPED = ROOT / "assets" / "traces"
# Sections that a chapter's file may have; the first two must be there, unless the stage is the figure.
SECTIONS = {"lead", "question", "verdict", "words", "deeper"}
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.slug)


def recorded(name: str = OPENING, source: str = "live") -> Ground:
    """The facts of a recording that came with the copy."""
    facts = Recording(name, "title", True, False, "model", "fp32", "machine", 1, 1, "", 1, "eos", source)
    found = ground.of_trace(read_trace(SHIPPED / f"{name}.jsonl"), facts)
    assert found is not None
    return found


@pytest.fixture(scope="module", params=["recorded", "computed", "large"])
def facts(request: pytest.FixtureRequest) -> Ground:
    if request.param == "recorded":
        return recorded()
    if request.param == "computed":
        return ground.computed()
    return ground.of_scenario(find_scenario("Mixtral-8x7B", "H200", "int8", 1, 2))


@every_chapter
def test_every_place_in_a_chapter_is_filled_from_any_run(chapter: Chapter, facts: Ground) -> None:
    figures = chapter.figures(facts)
    for section in chapter.text.sections.values():
        filled = text.fill(section, figures)
        assert "${" not in filled
    assert not [name for name, said in figures.items() if re.search(r"\b(nan|inf|None)\b", said) or not said]


@every_chapter
def test_a_chapter_has_its_sections_and_no_figure_that_nothing_needs(chapter: Chapter) -> None:
    sections = chapter.text.sections
    assert set(sections) <= SECTIONS
    needed = {"verdict"} if chapter.on_stage else {"verdict", "words"}
    assert needed <= set(sections)
    assert ("question" in sections) == ("lead" in sections) == (chapter.guess is not None)
    if chapter.guess is not None:
        assert all(text.phrase(f"{chapter.guess.name}.{choice}") for choice in chapter.guess.choices)


def test_a_place_that_nothing_computes_is_an_error() -> None:
    with pytest.raises(LookupError, match="'speed'"):
        text.fill("It wrote ${speed}.", {"time": "1 s"})
    with pytest.raises(LookupError, match=r"paradox\.nothing"):
        text.phrase("paradox.nothing")


def prose() -> Iterator[tuple[str, str]]:
    """Every text that a person may read, by where it stands."""
    for file in sorted(text.FOLDER.glob("*.md")):
        yield file.name, file.read_text(encoding="utf-8")
    for section, texts in text.phrases().items():
        yield from ((f"{section}.{name}", said) for name, said in texts.items())
    yield from text.glossary().items()


def test_no_figure_is_typed_into_the_prose() -> None:
    typed = [(where, re.findall(r"\S*\d\S*", re.sub(r"\$\{\w+\}", "", said))) for where, said in prose()]
    assert not [(where, numbers) for where, numbers in typed if numbers]


def test_every_phrase_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "ui").rglob("*.py"))
    for section, texts in text.phrases().items():
        if section in (
            "regime",
            "limit",
            "machines",
            "takeaways",
            "guess",
        ):  # named by a verdict, in a row, on a card, whole
            continue
        unused = [n for n in texts if f"{section}.{n}" not in code and f'"{n}"' not in code]
        assert not unused, f"{section}: {unused}"


def test_places_are_written_in_one_way() -> None:
    for where, said in prose():
        for found in Template.pattern.finditer(said):
            assert found["braced"], f"{where}: {said}"


def test_what_a_model_wrote_stays_characters() -> None:
    """Markup in a model's output must not become markup of the page."""
    hostile = (Path(__file__).parent.parent / "cases" / "a_output_markup.txt").read_text(encoding="utf-8")
    shown = drawn.typed([(0.0, hostile), (0.1, None), (0.2, "\n")])
    assert "<script" not in shown and "<img" not in shown
    assert "&lt;" in shown
    assert drawn.BLOCK in shown
    assert set(re.findall(r"<(/?\w+)", shown)) == {"div", "/div", "span", "/span"}


def test_a_definition_is_marked_once_and_escaped() -> None:
    marked = text.with_definitions("The KV cache of a prompt. Another KV cache.")
    assert marked.count("<abbr") == 2
    assert marked.endswith("Another KV cache.")


def test_figures_of_the_opening_recording_are_its_own() -> None:
    facts = recorded()
    steps = facts.reading
    assert facts.n_read == sum(step.n_tokens for step in steps) == 500
    assert facts.read_s == pytest.approx(sum(step.t1_s - step.t0_s for step in steps))
    assert facts.bits_per_weight == pytest.approx(32, rel=0.01)  # fp32
    # A prompt of this run's length, priced again, costs what the run's own steps say.
    again = facts.prompt_cost(500)
    assert sum(c.flops for c in again) == pytest.approx(sum(s.cost.flops for s in steps), rel=0.02)


def test_a_run_that_tells_too_little_is_no_ground(trace_text: object) -> None:
    """The hand-made trace names no shape of its model."""
    assert ground._spec(None) is None
    assert ground._spec({"name": "x"}) is None
    whole = read_trace(SHIPPED / f"{OPENING}.jsonl").header.model["spec"]
    assert ground._spec(whole) is not None
    assert ground._spec({**whole, "hidden": "wide"}) is None


@pytest.fixture
def lesson(desk: Server, tmp_path: Path) -> AppTest:
    """The page alone, with the real opening recording, every question passed by."""
    (tmp_path / "shipped" / f"{OPENING}.jsonl").write_bytes((SHIPPED / f"{OPENING}.jsonl").read_bytes())
    return _page()


def _page() -> AppTest:
    page = AppTest.from_function(_draw, default_timeout=20)
    page.session_state["passed_paradox"] = page.session_state["passed_silicon"] = True
    return page


def _draw() -> None:
    from ui.chapters import lesson

    lesson.page()


@every_chapter
def test_a_link_opens_a_chapter(lesson: AppTest, chapter: Chapter) -> None:
    lesson.query_params["chapter"] = chapter.slug
    lesson.run()
    assert not lesson.exception
    assert lesson.query_params["chapter"] == chapter.slug
    assert lesson.selectbox(key="lesson_chapter").value == chapter.slug


@every_chapter
def test_without_any_recording_a_chapter_teaches_and_says_why(desk: Server, tmp_path: Path, chapter: Chapter) -> None:
    (tmp_path / "shipped" / f"{OPENING}.jsonl").unlink()
    page = _page()
    page.query_params["chapter"] = chapter.slug
    page.run()
    assert not page.exception
    assert any(said.value.startswith(text.phrase("page.computed")) for said in page.text)


def test_next_and_previous_lead_through_all_chapters(lesson: AppTest) -> None:
    lesson.run()
    seen = [lesson.query_params["chapter"]]
    while not lesson.button(key="lesson_next").disabled:
        lesson.button(key="lesson_next").click().run()
        assert not lesson.exception
        seen.append(lesson.query_params["chapter"])
    assert seen == [chapter.slug for chapter in CHAPTERS]
    lesson.button(key="lesson_previous").click().run()
    assert lesson.query_params["chapter"] == CHAPTERS[-2].slug


def test_a_link_to_no_chapter_says_so_once(lesson: AppTest) -> None:
    lesson.query_params["chapter"] = "<b>nonsense</b>"
    lesson.run()
    assert text.phrase("page.unknown") in [said.value for said in lesson.text]
    assert lesson.query_params["chapter"] == CHAPTERS[0].slug
    lesson.run()
    assert text.phrase("page.unknown") not in [said.value for said in lesson.text]


def test_the_guess_comes_before_the_answer(lesson: AppTest) -> None:
    del lesson.session_state["passed_paradox"]
    lesson.run()
    answer = text.fill(CHAPTERS[0].text.sections["verdict"], CHAPTERS[0].figures(recorded()))
    assert answer not in [said.value for said in lesson.header]
    lesson.session_state["guess_paradox"] = {"choice": "no such choice"}
    lesson.run()
    assert answer not in [said.value for said in lesson.header]
    lesson.session_state["guess_paradox"] = {"choice": text.phrase("paradox.ten")}
    lesson.run()
    assert answer in [said.value for said in lesson.header]


def test_who_does_not_want_to_guess_need_not(lesson: AppTest) -> None:
    del lesson.session_state["passed_paradox"]
    lesson.run()
    assert lesson.get("bidi_component")
    lesson.button(key="pass_paradox").click().run()
    assert not lesson.exception
    assert not lesson.get("bidi_component")


def test_a_simulated_device_comes_to_the_stage(lesson: AppTest, desk: Server) -> None:
    lesson.query_params["chapter"] = "live"
    lesson.run()
    lesson.segmented_control(key="live_source").set_value("device").run()
    lesson.button(key="live_play_device").click().run()
    assert not lesson.exception
    (made,) = [one for one in desk.recordings() if one.source == "simulated"]
    assert lesson.session_state["run"] == made.id
    assert made.n_prompt_tokens == 500


def test_this_machine_runs_what_is_set(lesson: AppTest, source: ScriptedSource) -> None:
    lesson.query_params["chapter"] = "live"
    lesson.run()
    lesson.segmented_control(key="live_source").set_value("machine").run()
    lesson.segmented_control(key="run_preset").set_value("2000").run()
    lesson.button(key="live_run").click().run()
    assert not lesson.exception
    (asked,) = source.requests
    assert asked.prompt_tokens == 2000


def test_a_recording_comes_to_the_stage(lesson: AppTest, tmp_path: Path) -> None:
    other = "smollm2-135m-int4-500"
    (tmp_path / "shipped" / f"{other}.jsonl").write_bytes((SHIPPED / f"{other}.jsonl").read_bytes())
    lesson.query_params["chapter"] = "live"
    lesson.run()
    lesson.selectbox(key="live_recording").set_value(other).run()
    lesson.button(key="live_play_recording").click().run()
    assert not lesson.exception
    assert lesson.session_state["run"] == other


def test_what_does_not_help_is_shown(lesson: AppTest) -> None:
    lesson.query_params["chapter"] = "servers"
    lesson.run()
    lesson.segmented_control(key="servers_technique").set_value("speculation").run()
    lesson.select_slider(key="servers_spec_users").set_value(64).run()
    assert not lesson.exception
    assert any("it loses" in drawing.proto.body for drawing in lesson.get("html"))


@pytest.mark.parametrize(("acceptance", "guesses"), [(0.7, 5), (0.3, 3), (0.9, 8)])
def test_the_drawn_rounds_show_the_mean(acceptance: float, guesses: int) -> None:
    """Within a quarter of the closed form, though only a few rounds are drawn."""
    cost, verify = 0.1, 1.0
    marks = servers._rounds(acceptance, guesses, cost, verify)
    rounds = len(marks) / (guesses + 1)
    kept = sum(mark.hue == "write" for mark in marks)
    assert kept / rounds == pytest.approx(expected_tokens(acceptance, guesses), rel=0.25)
    assert max(mark.t_s for mark in marks) <= servers.SHOWN_STEPS
