"""Text comes out whole, at once, and without stops or special tokens, whatever the tokenizer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models

from engine.text import StopMatcher, StreamDecoder, Utf8Stream, byte_level_bytes, pieces

CASES = Path(__file__).parent.parent / "cases"
REPLACEMENT = "\ufffd"

_CHAR_OF_BYTE = {byte_level_bytes(chr(c)): chr(c) for c in range(0x21, 0x200) if len(byte_level_bytes(chr(c))) == 1}


def cases(name: str) -> list[dict[str, Any]]:
    return json.loads((CASES / name).read_text(encoding="utf-8"))["cases"]


def byte_level_tokenizer(parts: list[bytes]) -> tuple[Tokenizer, list[int]]:
    """A byte-level tokenizer with one token per distinct part, and the ids of ``parts``."""
    names = ["".join(_CHAR_OF_BYTE[bytes([b])] for b in part) for part in parts]
    vocab = {name: i for i, name in enumerate(dict.fromkeys(names))}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, [vocab[n] for n in names]


def sentencepiece_tokenizer(tokens: list[str]) -> tuple[Tokenizer, list[int]]:
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer, [vocab[t] for t in tokens]


@pytest.mark.parametrize("case", cases("a_pieces.json"), ids=lambda c: c["name"])
def test_characters_cut_over_tokens_come_out_whole(case: dict[str, Any]) -> None:
    parts = [bytes.fromhex(p) for p in case["pieces_hex"]]
    tokenizer, ids = byte_level_tokenizer(parts)
    decoder = StreamDecoder(tokenizer)
    deltas = [decoder.feed(i) for i in ids]
    assert "".join(deltas) == case["expect_text"] == tokenizer.decode(ids)
    assert not any(REPLACEMENT in d for d in deltas)
    assert len(deltas) == case["tokens"]


@pytest.mark.parametrize("case", cases("a_pieces.json"), ids=lambda c: c["name"])
def test_byte_fallback_tokens_come_out_whole(case: dict[str, Any]) -> None:
    data = b"".join(bytes.fromhex(p) for p in case["pieces_hex"])
    tokenizer, ids = sentencepiece_tokenizer([f"<0x{b:02X}>" for b in data])
    decoder = StreamDecoder(tokenizer)
    assert "".join(decoder.feed(i) for i in ids) == case["expect_text"]


@pytest.mark.parametrize("decoder_kind", ["sequence", "metaspace"])
def test_sentencepiece_words_keep_their_blanks(decoder_kind: str) -> None:
    case = json.loads((CASES / "a_pieces.json").read_text(encoding="utf-8"))["metaspace_tokens"]
    tokenizer, ids = sentencepiece_tokenizer(case["tokens"])
    if decoder_kind == "metaspace":
        tokenizer.decoder = decoders.Metaspace()
    decoder = StreamDecoder(tokenizer)
    assert "".join(decoder.feed(i) for i in ids) == case["expect_text"] == tokenizer.decode(ids)


def test_other_decoders_go_through_the_librarys_own_stream() -> None:
    vocab = {"hel": 0, "##lo": 1, "world": 2}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.decoder = decoders.WordPiece()
    decoder = StreamDecoder(tokenizer)
    assert "".join(decoder.feed(i) for i in (0, 1, 2)) == tokenizer.decode([0, 1, 2]) == "hello world"


@given(st.text(min_size=1, max_size=60), st.data())
def test_any_text_cut_anywhere_is_the_same_text(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(raw) - 1)), max_size=12)) | {0, len(raw)})
    parts = [raw[a:b] for a, b in itertools.pairwise(cuts) if a < b]
    tokenizer, ids = byte_level_tokenizer(parts)
    decoder = StreamDecoder(tokenizer)
    deltas = [decoder.feed(i) for i in ids]
    assert "".join(deltas) == text
    # Never later than needed: what is out so far is every character whose last byte has been fed.
    fed, out = 0, ""
    for part, delta in zip(parts, deltas, strict=True):
        fed, out = fed + len(part), out + delta
        assert out == raw[:fed].decode(errors="ignore")


@given(st.binary(max_size=40), st.integers(1, 5))
def test_bytes_that_are_no_text_read_as_in_one_go(raw: bytes, size: int) -> None:
    stream = Utf8Stream()
    out = "".join(stream.feed(raw[i : i + size]) for i in range(0, len(raw), size))
    assert raw.decode(errors="replace").startswith(out)


@pytest.mark.parametrize("case", cases("a_no_spaces.json"), ids=lambda c: c["name"])
def test_text_without_blanks_appears_token_by_token(case: dict[str, Any]) -> None:
    tokenizer, ids = byte_level_tokenizer([p.encode() for p in case["pieces"]])
    decoder, matcher = StreamDecoder(tokenizer), StopMatcher(["\nUser:"])
    assert [matcher.feed(decoder.feed(i)) for i in ids] == case["pieces"]


def test_special_tokens_are_not_in_the_answer_but_in_the_strip() -> None:
    tokenizer, ids = byte_level_tokenizer([b"Hi", b"!"])
    tokenizer.add_special_tokens([AddedToken("<|im_end|>", special=True)])
    tokenizer.add_tokens([AddedToken("<think>", special=False), AddedToken("</s>", special=False)])
    end, think, turn = (tokenizer.token_to_id(t) for t in ("<|im_end|>", "<think>", "</s>"))
    answer = StreamDecoder(tokenizer, hidden_ids={turn})
    assert [answer.feed(i) for i in (ids[0], think, ids[1], end, turn)] == ["Hi", "<think>", "!", "", ""]
    assert pieces(tokenizer, [ids[0], end]) == ("Hi", "<|im_end|>")


@pytest.mark.parametrize("case", cases("a_stop_split.json"), ids=lambda c: c["expect"])
def test_stop_texts(case: dict[str, Any]) -> None:
    matcher = StopMatcher(case["stop"])
    shown = "".join(matcher.feed(p) for p in case["pieces"]) + matcher.flush()
    assert shown == case["expect"]
    assert matcher.stopped == (case["finish"] == "stop")


_short = st.text(alphabet="ab\n", max_size=4)


@given(st.lists(_short, max_size=12), st.lists(_short, min_size=1, max_size=3))
def test_stops_do_not_depend_on_how_the_text_is_cut(parts: list[str], stops: list[str]) -> None:
    whole = "".join(parts)
    stops = [s for s in stops if s]
    ends = [(whole.find(s) + len(s), whole.find(s)) for s in stops if s in whole]
    expected = whole[: min(ends)[1]] if ends else whole

    matcher, shown, fed = StopMatcher(stops), "", ""
    for part in parts:
        shown, fed = shown + matcher.feed(part), fed + part
        if matcher.stopped:
            break
        held = fed[len(shown) :]
        assert held == "" or any(s.startswith(held) and s != held for s in stops)
    assert shown + matcher.flush() == expected
    assert matcher.feed("more") == "" or not matcher.stopped
