"""What a row of the claims ledger is, and the words its figures are written in.

``ours`` and ``condition`` are sentences whose numbers were just computed; nothing in them is typed by hand but the
story's own figures. ``basis`` names what such a number rests on where it is a published measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "holds when", "does not"]

# The story's own words: a document of 2,000 words, an answer of 50, and English at about four tokens for three words.
STORY_WORDS_READ, STORY_WORDS_WRITTEN = 2000, 50
TOKENS_PER_WORD = 4 / 3
TOKENS_READ = round(STORY_WORDS_READ * TOKENS_PER_WORD)
TOKENS_WRITTEN = round(STORY_WORDS_WRITTEN * TOKENS_PER_WORD)
STORY_READ_S, STORY_WRITE_S = 0.120, 6.2

# Shares of the published peaks that public measurements of whole models reach.
USUAL_MFU = (0.40, 0.60)
USUAL_MBU = (0.60, 0.85)


@dataclass(frozen=True, slots=True)
class StageSetting:
    """What the simulator's controls are set to. Names as in the catalogs."""

    model: str
    hardware: str
    weights: str
    prompt_tokens: int = TOKENS_READ
    new_tokens: int = TOKENS_WRITTEN
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: ``says`` and ``figure`` are the story's, the rest is ours.

    ``condition`` says when it holds (for "holds when"), or why it does not. ``setting`` shows it on
    the stage: the conditions under which it holds, or, where no device of the catalog meets them, the nearest one.
    """

    id: str
    says: str
    figure: str
    ours: str
    verdict: Verdict
    condition: str
    setting: StageSetting
    basis: str = ""


def span(*figures: float, form: str = ",.0f") -> str:
    """Figures as a range from the smallest to the greatest; one figure where both read the same."""
    first, last = min(figures), max(figures)
    return f"{first:{form}}" if f"{first:{form}}" == f"{last:{form}}" else f"{first:{form}} to {last:{form}}"


def percent(share: float, digits: int = 0) -> str:
    return f"{share * 100:.{digits}f} %"


def verdict(always: bool, sometimes: bool) -> Verdict:
    """From what was found: it holds as it is told, under some conditions only, or under none."""
    return "holds" if always else "holds when" if sometimes else "does not"
