"""The lesson's words: read from a language's folder, filled with figures that were just computed.

A folder holds one Markdown file a chapter, ``phrases.toml`` with the short sentences and labels of the panels, and
``glossary.toml``. A translation is another folder. Texts hold no figure: a place for one is written ``${name}``
(``string.Template``), and a name that nobody computes is an error, never an empty place.

Not covered: plural forms; sentences are written so that they need none.
"""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "lessons" / "en"


@dataclass(frozen=True, slots=True)
class ChapterText:
    """A chapter's file: its first heading, and what stands under each second heading by that heading's name."""

    title: str
    sections: Mapping[str, str]


@cache
def chapter_text(file: str) -> ChapterText:
    """The file of a chapter. Raises OSError where it is missing, ValueError where it does not begin with a title."""
    title, *sections = re.split(r"^## ", (FOLDER / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not title.startswith("# "):
        raise ValueError(f"{file} does not begin with a title.")
    named = (section.partition("\n") for section in sections)
    return ChapterText(title.removeprefix("# ").strip(), {name.strip(): text.strip() for name, _, text in named})


def fill(text: str, figures: Mapping[str, str]) -> str:
    """The text with its places filled. Raises LookupError for a place that no figure is for, ValueError for a bad one.

    Figures are our own formatted numbers and catalog names; a stranger's text is never put into Markdown.
    """
    try:
        return Template(text).substitute(figures)
    except KeyError as missing:
        raise LookupError(f"Nothing computes the figure {missing.args[0]!r} in: {text[:60]}") from None


def phrase(name: str, **figures: str) -> str:
    """A short text of a panel by its dotted name ("silicon.fits"), filled. Raises LookupError for an unknown name."""
    section, _, key = name.partition(".")
    text = phrases().get(section, {}).get(key)
    if text is None:
        raise LookupError(f"phrases.toml has no {name!r}.")
    return fill(text, figures)


@cache
def phrases() -> Mapping[str, Mapping[str, str]]:
    """All short texts by section and name. Raises OSError where the file is missing."""
    return _toml("phrases.toml")


@cache
def glossary() -> Mapping[str, str]:
    """What each word means, in the file's order. Raises OSError where the file is missing."""
    terms: Mapping[str, str] = _toml("glossary.toml")["terms"]
    return terms


def _toml(file: str) -> dict[str, dict[str, str]]:
    return tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))


def with_definitions(text: str) -> str:
    """The text as HTML-bearing Markdown: each word of the glossary shows its meaning on hover, focus and touch.

    Only the first place of a word is marked, so that a page is not a field of dots.
    """
    known = {term.lower(): meaning for term, meaning in glossary().items()}
    longest_first = sorted(known, key=len, reverse=True)
    seen: set[str] = set()

    def mark(found: re.Match[str]) -> str:
        word = found[0]
        if word.lower() in seen:
            return word
        seen.add(word.lower())
        meaning = html.escape(known[word.lower()], quote=True)
        return f'<abbr class="term" tabindex="0" title="{meaning}">{word}</abbr>'

    return re.sub(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)", mark, text, flags=re.IGNORECASE)
