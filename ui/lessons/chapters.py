"""The chapters of the lesson, in their order. A new one is a Markdown file, a row here, and a panel if it needs one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ui.lessons.ground import Ground
from ui.lessons.guess import Guess
from ui.lessons.panels import decode, live, machines, paradox, prefill, servers, silicon, takeaways
from ui.lessons.text import ChapterText, chapter_text


@dataclass(frozen=True, slots=True)
class Chapter:
    """``slug`` is its name in an address, ``file`` its words. ``figures`` fills the places in them, ``panel`` draws
    what stands beside them. ``guess``: what the learner is asked before the answer. ``on_stage``: the stage, which
    stands below, is the figure, so the panel keeps to a line or two."""

    slug: str
    file: str
    figures: Callable[[Ground], dict[str, str]]
    panel: Callable[[Ground], None]
    guess: Guess | None = None
    on_stage: bool = False

    @property
    def text(self) -> ChapterText:
        return chapter_text(self.file)

    @property
    def title(self) -> str:
        return self.text.title


CHAPTERS = (
    Chapter(
        "paradox",
        "01-paradox.md",
        paradox.figures,
        paradox.panel,
        Guess("paradox", ("same", "three", "ten", "thirty", "hundred")),
    ),
    Chapter("prefill", "02-prefill.md", prefill.figures, prefill.panel),
    Chapter("decode", "03-decode.md", decode.figures, decode.panel),
    Chapter("live", "04-live.md", live.figures, live.panel, on_stage=True),
    Chapter("silicon", "05-silicon.md", silicon.figures, silicon.panel, Guess("silicon", ("yes", "no", "depends"))),
    Chapter("servers", "06-servers.md", servers.figures, servers.panel),
    Chapter("takeaways", "07-takeaways.md", takeaways.figures, takeaways.panel),
    Chapter("machines", "08-machines.md", machines.figures, machines.panel),
)
