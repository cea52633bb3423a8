"""Finding a catalog row by the name a person types: case, dashes and the publisher's prefix do not matter.

A whole match wins, then the one name that starts with what was typed, then the one that has all of its words and the
fewest others ("4090" is the RTX 4090, not the 4090 D). Where several do, or none, nothing is guessed: the error lists
the nearest names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

NEAREST = 5
LONGEST = 60  # of a typed name, to show and to compare
_VENDOR = re.compile(r"^(meta|nvidia|geforce|amd|radeon|intel|google)(?=[a-z0-9])")
_VARIANT = re.compile(r"[-_ ](hf|chat|instruct|it|base)(?=[-_ ]|$)")
_VERSION = re.compile(r"[-_ ]v\d+(\.\d+)?$")


def resolve(wanted: str, names: Iterable[str], what: str) -> str:
    """The one of ``names`` that ``wanted`` means. Raises LookupError with the nearest names where it is not one."""
    candidates = list(names)
    typed = fold(wanted)
    for matches in (
        [n for n in candidates if plain(n) == plain(wanted)],
        [n for n in candidates if typed and fold(n) == typed],
        [n for n in candidates if typed and fold(_VERSION.sub("", n)) == fold(_VERSION.sub("", wanted))],
        [n for n in candidates if typed and fold(n).startswith(typed)],
        _least_said_beside(wanted, candidates, r"[a-z0-9.]+"),
        _least_said_beside(wanted, candidates, r"[a-z]+|\d+(?:\.\d+)?"),
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise LookupError(f"{_shown(wanted)} could be any of: {', '.join(matches[: NEAREST + 3])}.")
    nearest = sorted(candidates, key=lambda n: -SequenceMatcher(None, typed[:LONGEST], fold(n)).ratio())[:NEAREST]
    raise LookupError(f"No {what} is called {_shown(wanted)}; the nearest names are: {', '.join(nearest)}.")


def _shown(typed: str) -> str:
    return repr(typed if len(typed) <= LONGEST else typed[:LONGEST] + "...")


def plain(name: str) -> str:
    """Lower-case letters and digits only, without the publisher before a slash."""
    return re.sub(r"[^a-z0-9]", "", name.lower().rsplit("/", 1)[-1])


def fold(name: str) -> str:
    """``plain`` without what does not tell one row from another: vendor names, -hf, -chat, -instruct, -it."""
    short, before = plain(_VARIANT.sub("", name.lower())), None
    while before != short:
        before, short = short, _VENDOR.sub("", short)
    return short


def _least_said_beside(wanted: str, candidates: list[str], word: str) -> list[str]:
    """Names with all words of ``wanted``, and of these the ones with the fewest others."""
    words = _words(wanted, word)
    found = [n for n in candidates if words and words <= _words(n, word)]
    fewest = min((len(_words(n, word)) for n in found), default=0)
    return [n for n in found if len(_words(n, word)) == fewest]


def _words(name: str, word: str) -> frozenset[str]:
    return frozenset(re.findall(word, name.lower().rsplit("/", 1)[-1]))
