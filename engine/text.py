"""Tokens to text, one token at a time: what may be shown the moment a token is known.

A token is not a character: an emoji is three tokens or more, and a SentencePiece word carries its blank in front. So
``StreamDecoder`` works on bytes and releases whole characters only; the pieces joined equal the one-shot decode.
``StopMatcher`` keeps a stop text from the screen without holding back more than could still become one. Neither has a
clock: a token's time is the token's, however late its text comes out.

Byte-level BPE and SentencePiece (metaspace, byte fallback) are decoded here; any other decoder goes through
``tokenizers``' own ``DecodeStream``. Not covered: clean-ups that change text already shown.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the device check runs without this package
    from tokenizers import Tokenizer

METASPACE = "\u2581"


def _byte_of_char() -> dict[str, int]:
    """The inverse of GPT-2's byte alphabet: printable bytes stand for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTE_OF_CHAR = _byte_of_char()


def byte_level_bytes(token: str) -> bytes:
    """The bytes of a byte-level BPE token; an added token outside that alphabet is its own UTF-8."""
    try:
        return bytes(_BYTE_OF_CHAR[c] for c in token)
    except KeyError:
        return token.encode()


def sentencepiece_bytes(token: str) -> bytes:
    """The bytes of a SentencePiece token: ``<0xF0>`` is one byte, the word mark is a blank."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            pass
    return token.replace(METASPACE, " ").encode()


class Utf8Stream:
    """Bytes in, whole characters out. Bytes that can never become a character read as U+FFFD, as in one go."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)


class StreamDecoder:
    """Text of a growing list of token ids.

    ``hidden_ids`` and the tokenizer's own special tokens give no text, unless ``show_special``: then they are written
    out, which is what a token strip wants. A tail that never became a character is not shown.
    """

    def __init__(
        self, tokenizer: Tokenizer, hidden_ids: Iterable[int] = frozenset(), *, show_special: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._hidden = frozenset() if show_special else frozenset(hidden_ids) | special_ids(tokenizer)
        kinds = _decoder_kinds(tokenizer)
        self._to_bytes = _bytes_function(kinds)
        self._drops_first_blank = _drops_first_blank(kinds)
        self._utf8 = Utf8Stream()
        self._at_start = True
        self._foreign = None if self._to_bytes else _foreign_stream(not show_special)

    def feed(self, token_id: int) -> str:
        """What became final with this token, possibly nothing."""
        if token_id in self._hidden:
            return ""
        if self._to_bytes is None:
            return self._feed_foreign(token_id)
        token = self._tokenizer.id_to_token(token_id)
        data = b"" if token is None else self._to_bytes(token)
        if self._at_start and data:
            self._at_start = False
            if self._drops_first_blank and data.startswith(b" "):
                data = data[1:]
        return self._utf8.feed(data)

    def _feed_foreign(self, token_id: int) -> str:
        return (self._foreign and self._foreign.step(self._tokenizer, token_id)) or ""


def pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """One text per token, special tokens written out, empty where the token ends no character."""
    decoder = StreamDecoder(tokenizer, show_special=True)
    return tuple(decoder.feed(i) for i in ids)


def special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The ids that the tokenizer itself marks as special."""
    return frozenset(i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special)


class StopMatcher:
    """Passes text on until one of ``stops`` is complete. The stop that is complete first counts.

    Holds only the longest end of the text that can still become a stop. Empty stops are ignored.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(dict.fromkeys(s for s in stops if s))
        self._held = ""
        self.stopped = False

    def feed(self, text: str) -> str:
        """What may be shown now. After a stop: nothing, and ``stopped`` is True."""
        if self.stopped:
            return ""
        self._held += text
        cut = self._first_stop()
        if cut is not None:
            shown, self._held, self.stopped = self._held[:cut], "", True
            return shown
        keep = self._longest_open_end()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def flush(self) -> str:
        """What was held, once it is known that nothing follows."""
        shown, self._held = self._held, ""
        return shown

    def _first_stop(self) -> int | None:
        found = [(at + len(s), at) for s in self._stops if (at := self._held.find(s)) >= 0]
        return min(found)[1] if found else None

    def _longest_open_end(self) -> int:
        longest = max((len(s) for s in self._stops), default=1) - 1
        for size in range(min(longest, len(self._held)), 0, -1):
            end = self._held[-size:]
            if any(s.startswith(end) for s in self._stops):
                return size
        return 0


def _decoder_kinds(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The tokenizer's decoder as a flat list of its parts."""
    if tokenizer.decoder is None:
        return []
    state: dict[str, Any] = json.loads(tokenizer.decoder.__getstate__())
    parts: list[dict[str, Any]] = state.get("decoders", [state])
    return parts


def _foreign_stream(skip_special: bool) -> Any:
    from tokenizers.decoders import DecodeStream

    return DecodeStream(skip_special_tokens=skip_special)


def _bytes_function(kinds: list[dict[str, Any]]) -> Callable[[str], bytes] | None:
    names = {k["type"] for k in kinds}
    if names == {"ByteLevel"}:
        return byte_level_bytes
    sentencepiece = "Metaspace" in names or any(k.get("content") == " " for k in kinds if k["type"] == "Replace")
    if sentencepiece and names <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        return sentencepiece_bytes
    return None


def _drops_first_blank(kinds: list[dict[str, Any]]) -> bool:
    for kind in kinds:
        if kind["type"] == "Metaspace" and kind.get("prepend_scheme", "always") != "never":
            return True
        if kind["type"] == "Strip" and kind.get("content") == " " and kind.get("start", 0) > 0:
            return True
    return False
