"""Tokenizers put together from GGUF metadata against the tokenizers that they stand for, and the ids that matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from engine.catalog import embedded_model
from engine.load import open_model
from engine.tokenizer import TokenizerData, from_directory, from_gguf

pytestmark = pytest.mark.engine
TEXTS = [
    "Hello, world! It's 2026: 1234567 tokens, isn't it?",
    "emoji 🚀👩‍🚀 and accents é ü, 中文字符, עברית",
    "  leading\n\n\nlines\t tabs   and spaces  ",
    "def f(x):\n    return x ** 2  # café",
    "",
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# The pre-tokenizers that the models' own tokenizer.json files hold (Llama 3, Qwen2, SmolLM2, GPT-2).
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")


def split_by(expression: str) -> Any:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), byte_level])


REFERENCES = {
    "llama-bpe": split_by(LLAMA3),
    "qwen2": split_by(QWEN2),
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "default": pre_tokenizers.ByteLevel(add_prefix_space=False),
}


def trained(pre_tokenizer: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 5 + ["12 123 1234 it's we'll"] * 5, trainer)
    return tokenizer


def as_gguf(tokenizer: Tokenizer, name: str) -> dict[str, Any]:
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": name,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.chat_template": "{{ '<|im_start|>' }}{{ '<|im_end|>' }}",
    }


@pytest.mark.parametrize("name", REFERENCES)
def test_gguf_tokenizer_equals_the_one_it_was_made_from(name: str) -> None:
    reference = trained(REFERENCES[name])
    rebuilt = from_gguf(as_gguf(reference, name)).tokenizer
    for text in [*TEXTS, "<|im_start|>user\n12345<|im_end|>"]:
        assert rebuilt.encode(text).ids == reference.encode(text).ids
        assert rebuilt.decode(rebuilt.encode(text).ids, skip_special_tokens=False) == text


def test_ends_are_the_union_of_eos_and_the_template_turn_end() -> None:
    data = from_gguf(as_gguf(trained(REFERENCES["default"]), "default"))
    assert data.eos_ids == {0, 2}
    assert (data.bos_id, data.bos_token, data.eos_token) == (1, "<|im_start|>", "<|endoftext|>")
    assert data.special_ids == {0, 1, 2}


def test_sentence_piece_joins_by_score() -> None:
    """By hand: "▁ab" scores above "bc", so " abc" is ▁ab + c; é has no piece and falls back to its two bytes."""
    pieces = {"<unk>": 0.0, "<s>": 0.0, "</s>": 0.0}
    pieces |= {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    pieces |= {"▁ab": -1.0, "▁a": -2.0, "bc": -3.0, "▁": -10.0, "a": -11.0, "b": -12.0, "c": -13.0}
    tokens = list(pieces)
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": list(pieces.values()),
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 7,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    tokenizer = from_gguf(metadata).tokenizer
    assert tokenizer.encode("abc").tokens == ["▁ab", "c"]
    assert tokenizer.encode("cbc").tokens == ["▁", "c", "bc"]
    assert tokenizer.encode("aé").tokens == ["▁a", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(tokenizer.encode("abc aé 🚀").ids) == "abc aé 🚀"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tokenizer.ggml.model": "bert"}, "'bert'"),
        ({"tokenizer.ggml.pre": "made-up"}, "'made-up'"),
        ({"tokenizer.ggml.tokens": []}, "no vocabulary"),
    ],
)
def test_tokenizers_not_covered_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        from_gguf(as_gguf(trained(REFERENCES["default"]), "default") | change)


def directory_with(tmp_path: Path, **files: dict[str, Any]) -> TokenizerData:
    trained(REFERENCES["smollm"]).save(str(tmp_path / "tokenizer.json"))
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return from_directory(tmp_path, {"eos_token_id": [0]})


def test_directory_agrees_with_transformers(tmp_path: Path) -> None:
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}
    data = directory_with(tmp_path, tokenizer_config=settings)
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for text in TEXTS:
        assert (
            data.tokenizer.encode(text, add_special_tokens=False).ids
            == theirs(text, add_special_tokens=False).input_ids
        )


def test_directory_collects_ends_from_all_its_files(tmp_path: Path) -> None:
    settings = {"eos_token": {"content": "<|im_end|>"}, "chat_template": [{"name": "default", "template": "hi"}]}
    data = directory_with(tmp_path, tokenizer_config=settings, generation_config={"eos_token_id": 1})
    assert data.eos_ids == {0, 1, 2}
    assert data.chat_template == "hi"


def test_a_template_in_a_file_of_its_own_comes_before_the_one_in_the_settings(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{{ 'é' }}", "utf-8")
    assert directory_with(tmp_path, tokenizer_config={"chat_template": "hi"}).chat_template == "{{ 'é' }}"


def test_a_broken_tokenizer_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="cannot be read"):
        from_directory(tmp_path, {})
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"no tokenizer\.json"):
        from_directory(tmp_path, {})


def test_embedded_tokenizer_round_trips() -> None:
    path = embedded_model()
    assert path is not None
    model = open_model(path, lambda doing, share: None)
    for text in TEXTS:
        ids = model.tokenizer.encode(text).ids
        assert model.tokenizer.decode(ids) == text
    # Digits one by one, and special tokens as one id each: <|im_start|> is 1 and <|im_end|> is 2 in this model.
    assert len(model.tokenizer.encode("1234567").ids) == 7
    assert model.tokenizer.encode("<|im_start|><|im_end|>").ids == [1, 2]
    assert (model.bos_id, model.eos_ids) == (1, frozenset({2}))
