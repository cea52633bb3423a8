"""A ``tokenizers.Tokenizer`` from GGUF metadata or a tokenizer.json, and the token ids that mean something.

GGUF stores vocabulary, merges and the name of the pre-tokenizer (its regular expression), not the tokenizer itself; it
is put together here. Covers byte-level BPE with the pre-tokenizers below, and SentencePiece BPE ("llama"), whose merges
are derived from the pieces' scores. Templates are rendered elsewhere: here are only their data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

_CONTROL, _USER_DEFINED = 3, 4  # GGUF's token types for special and for added tokens
_BYTE, _UNKNOWN = 6, 2
_WORDS_DIGITS_BY_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS_DIGITS_BY_1 = _WORDS_DIGITS_BY_3.replace(r"\p{N}{1,3}", r"\p{N}")
# Tokens that end a turn of a chat in the templates of the families covered; a template that uses one stops on it.
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "</s>", "<|end_of_text|>", "<|endoftext|>")
_MAX_TOKENIZER_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class TokenizerData:
    """The tokenizer with what its files say beside it. ``eos_ids`` is the union of all that may end an answer."""

    tokenizer: Tokenizer
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    bos_id: int | None
    eos_ids: frozenset[int]
    special_ids: frozenset[int]


def from_gguf(metadata: Mapping[str, Any]) -> TokenizerData:
    """The tokenizer that GGUF metadata describes. Raises ValueError where it is of a kind not covered."""
    kind = metadata.get("tokenizer.ggml.model")
    tokens: list[str] = metadata.get("tokenizer.ggml.tokens") or []
    if not tokens:
        raise ValueError("This GGUF file has no vocabulary.")
    types = [int(t) for t in metadata.get("tokenizer.ggml.token_type", [])] or [1] * len(tokens)
    if kind == "gpt2":
        tokenizer = _byte_level(metadata, tokens)
    elif kind == "llama":
        tokenizer = _sentence_piece(metadata, tokens, types)
    else:
        raise ValueError(f"This GGUF file has a tokenizer of the kind {kind!r}, which is not supported.")
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, types, strict=True) if k == _CONTROL]
    )
    tokenizer.add_tokens(
        [AddedToken(t, normalized=False) for t, k in zip(tokens, types, strict=True) if k == _USER_DEFINED]
    )
    template = metadata.get("tokenizer.chat_template")
    ends = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    bos_id, eos_id = metadata.get("tokenizer.ggml.bos_token_id"), ends[0]
    return TokenizerData(
        tokenizer=tokenizer,
        chat_template=template,
        bos_token=None if bos_id is None else tokens[bos_id],
        eos_token=None if eos_id is None else tokens[eos_id],
        bos_id=bos_id,
        eos_ids=_end_ids(tokenizer, template, (e for e in ends if e is not None)),
        special_ids=frozenset(i for i, k in enumerate(types) if k == _CONTROL),
    )


def from_directory(directory: Path, config: Mapping[str, Any]) -> TokenizerData:
    """tokenizer.json with its companions. Raises ValueError where it is missing or broken."""
    path = directory / "tokenizer.json"
    if not path.is_file() or path.stat().st_size > _MAX_TOKENIZER_FILE_BYTES:
        raise ValueError(f"{directory.name} has no tokenizer.json.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises plain Exception
        raise ValueError(f"The tokenizer.json of {directory.name} cannot be read.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    settings = read_json(directory / "tokenizer_config.json")
    generation = read_json(directory / "generation_config.json")
    template = _template(directory, settings)
    bos_token, eos_token = _token_text(settings.get("bos_token")), _token_text(settings.get("eos_token"))
    ends = [*_ids(config.get("eos_token_id")), *_ids(generation.get("eos_token_id"))]
    if eos_token is not None and (eos_id := tokenizer.token_to_id(eos_token)) is not None:
        ends.append(eos_id)
    bos_id = tokenizer.token_to_id(bos_token) if bos_token else None
    added = tokenizer.get_added_tokens_decoder()
    return TokenizerData(
        tokenizer=tokenizer,
        chat_template=template,
        bos_token=bos_token,
        eos_token=eos_token,
        bos_id=bos_id if bos_id is not None else next(iter(_ids(config.get("bos_token_id"))), None),
        eos_ids=_end_ids(tokenizer, template, ends),
        special_ids=frozenset(i for i, token in added.items() if token.special),
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, empty where there is none. Raises ValueError where it is broken."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is not valid JSON.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} does not hold a JSON object.")
    return content


def _byte_level(metadata: Mapping[str, Any], tokens: list[str]) -> Tokenizer:
    merges = [tuple(merge.split(" ", 1)) for merge in metadata.get("tokenizer.ggml.merges") or []]
    name = str(metadata.get("tokenizer.ggml.pre", "default"))
    model = models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, ignore_merges=name == "llama-bpe")
    tokenizer = Tokenizer(model)
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    if name in ("default", "gpt-2"):
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    expressions = {"llama-bpe": _WORDS_DIGITS_BY_3, "qwen2": _WORDS_DIGITS_BY_1}
    if name not in expressions:
        raise ValueError(f"This GGUF file splits its text by the rules of {name!r}, which are not known here.")
    split = pre_tokenizers.Split(Regex(expressions[name]), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _sentence_piece(metadata: Mapping[str, Any], tokens: list[str], types: list[int]) -> Tokenizer:
    """SentencePiece BPE joins the pair whose union scores best, so the pieces in order of score are the merges."""
    scores = metadata.get("tokenizer.ggml.scores")
    if scores is None:
        raise ValueError("This GGUF file has a SentencePiece vocabulary without scores.")
    ids = {t: i for i, t in enumerate(tokens)}
    unknown = next((t for t, k in zip(tokens, types, strict=True) if k == _UNKNOWN), None)
    merges = _merges_from_scores(ids, [float(s) for s in scores], types)
    tokenizer = Tokenizer(
        models.BPE(vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=_BYTE in types)
    )
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    strip = []
    if bool(metadata.get("tokenizer.ggml.add_space_prefix", True)):
        steps.insert(0, normalizers.Prepend("▁"))
        strip = [decoders.Strip(content=" ", left=1, right=0)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return tokenizer


def _merges_from_scores(ids: Mapping[str, int], scores: list[float], types: list[int]) -> list[tuple[str, str]]:
    joined = []
    for piece, index in ids.items():
        if types[index] in (_BYTE, _UNKNOWN, _CONTROL):
            continue
        pairs = ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        joined += [(-scores[index], ids[a], ids[b], a, b) for a, b in pairs if a in ids and b in ids]
    return [(left, right) for _, _, _, left, right in sorted(joined)]


def _end_ids(tokenizer: Tokenizer, template: str | None, ids: Iterable[int]) -> frozenset[int]:
    """The ids given, and the turn ends that the template writes."""
    written = (token for token in _TURN_ENDS if template is not None and token in template)
    turn_ends = (tokenizer.token_to_id(token) for token in written)
    return frozenset(int(i) for i in ids) | frozenset(i for i in turn_ends if i is not None)


def _template(directory: Path, settings: Mapping[str, Any]) -> str | None:
    beside = directory / "chat_template.jinja"
    if beside.is_file():
        return beside.read_text("utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several named templates
        template = next((t.get("template") for t in template if t.get("name") == "default"), None)
    return template if isinstance(template, str) else None


def _token_text(token: Any) -> str | None:
    """Files write a token as text or as an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _ids(value: Any) -> list[int]:
    """A field that holds an id, a list of ids, or nothing."""
    if value is None:
        return []
    return [int(v) for v in value] if isinstance(value, list) else [int(value)]
