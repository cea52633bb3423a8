"""Prompts: exact fillers, and refusals in one sentence before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.prompts import FILLER, prepare
from telemetry.protocol import SYNTHETIC_TEXT_NOTE, RunRequest

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}[assistant]"


def byte_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@dataclass
class FakeTokens:
    chat_template: str | None = TEMPLATE
    bos_token: str | None = None
    eos_token: str | None = None
    bos_id: int | None = None
    tokenizer: Tokenizer = field(default_factory=byte_tokenizer)


@pytest.mark.parametrize("count", [23, 100, 1999, 20_000])
@pytest.mark.parametrize("chat", [True, False])
def test_a_filler_has_exactly_the_tokens_that_were_asked(count: int, chat: bool) -> None:
    prompt = prepare(FakeTokens(), RunRequest(prompt_tokens=count, chat=chat), 32_768)
    assert len(prompt.ids) == len(prompt.pieces) == count
    text = "".join(prompt.pieces)
    assert FILLER[: min(70, count - 22)] in text
    assert text.endswith("[/][assistant]") == chat
    assert prompt.notes[-1] == SYNTHETIC_TEXT_NOTE


def test_a_filler_too_short_for_the_template_is_refused_with_the_least() -> None:
    with pytest.raises(ValueError, match="at least 21 tokens; 20 was asked"):
        prepare(FakeTokens(), RunRequest(prompt_tokens=20), 1000)


def test_the_system_text_is_fed() -> None:
    prompt = prepare(FakeTokens(), RunRequest(prompt="Hi", system="Be brief."), 1000)
    assert "".join(prompt.pieces) == "[system]Be brief.[/][user]Hi[/][assistant]"


def test_plain_completion_feeds_the_text_alone() -> None:
    assert "".join(prepare(FakeTokens(), RunRequest(prompt="Hi 🔥", chat=False), 1000).pieces) == "Hi 🔥"


@pytest.mark.parametrize("prompt", ["", "   ", "\n\t"])
def test_an_empty_prompt_is_refused(prompt: str) -> None:
    with pytest.raises(ValueError, match="prompt is empty"):
        prepare(FakeTokens(), RunRequest(prompt=prompt), 1000)


def test_a_prompt_over_the_context_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"9,000 tokens.*64 new.*holds 8,192"):
        prepare(FakeTokens(), RunRequest(prompt="a" * 9000, chat=False), 8192)
    with pytest.raises(ValueError, match=r"1,000,000,000 tokens"):
        prepare(FakeTokens(), RunRequest(prompt_tokens=10**9), 8192)


def test_prompt_and_answer_may_fill_the_context_to_the_last_token() -> None:
    assert len(prepare(FakeTokens(), RunRequest(prompt_tokens=90, max_new_tokens=10), 100).ids) == 90
    with pytest.raises(ValueError, match="holds 100"):
        prepare(FakeTokens(), RunRequest(prompt_tokens=91, max_new_tokens=10), 100)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RunRequest(prompt="Hi", max_new_tokens=0), "At least one new token"),
        (RunRequest(prompt="Hi", max_new_tokens=-5), "At least one new token"),
        (RunRequest(prompt_tokens=0), "at least one token"),
        (RunRequest(), "either a prompt"),
        (RunRequest(prompt="Hi", prompt_tokens=9), "either a prompt"),
    ],
)
def test_requests_that_cannot_run_are_refused(request_: RunRequest, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        prepare(FakeTokens(), request_, 1000)
