"""Chat templates: what they refuse is worked round and said, and a hostile one fails in a sentence, in time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from engine.chat import (
    FOLDED_NOTE,
    MERGED_NOTE,
    NO_TEMPLATE_NOTE,
    ChatText,
    Message,
    TemplateError,
    TemplateRefused,
    chat_text,
    encode,
    render,
)

CASES = json.loads((Path(__file__).parent.parent / "cases" / "b_templates.json").read_text(encoding="utf-8"))
MESSAGES = [Message(**m) for m in CASES["messages"]]


def tokenizer_that_adds_bos() -> Tokenizer:
    vocab = {"<s>": 0, "[UNK]": 1, "Hello": 2, "[": 3}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Punctuation()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def test_one_bos_when_the_template_writes_it() -> None:
    text = chat_text(CASES["with_bos"], MESSAGES, "<s>")
    ids = encode(tokenizer_that_adds_bos(), text, 0)
    assert ids[0] == 0 and ids.count(0) == 1
    assert text.text.endswith("[assistant]")


@pytest.mark.parametrize("text", [ChatText("Hello", False), ChatText("<s>Hello", False), ChatText("Hello", True)])
def test_one_bos_whoever_writes_it(text: ChatText) -> None:
    assert encode(tokenizer_that_adds_bos(), text, 0) == [0, 2]


def test_no_bos_where_the_model_has_none() -> None:
    tokenizer = tokenizer_that_adds_bos()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    assert encode(tokenizer, ChatText("Hello", False), None) == [2]
    assert encode(tokenizer, ChatText("Hello", True), 0) == [2]


@pytest.mark.parametrize("name", ["no_system", "alternate_only"])
def test_system_is_folded_into_the_first_user_turn_with_a_note(name: str) -> None:
    text = chat_text(CASES[name], MESSAGES, "<s>")
    assert "[user]Be brief.\n\nHello[/]" in text.text
    assert text.notes == (FOLDED_NOTE,)


def test_two_user_turns_in_a_row_are_joined_with_a_note() -> None:
    text = chat_text(CASES["alternate_only"], [Message("user", "One"), Message("user", "Two")])
    assert text.text == "[user]One\n\nTwo[/]"
    assert text.notes == (MERGED_NOTE,)


def test_no_template_is_a_plain_completion_with_a_note() -> None:
    assert chat_text(CASES["none"], MESSAGES) == ChatText("Be brief.\n\nHello", False, (NO_TEMPLATE_NOTE,))


def test_a_template_that_takes_nothing_is_refused_in_its_own_words() -> None:
    with pytest.raises(TemplateRefused, match="no thanks"):
        chat_text("{{ raise_exception('no thanks') }}", MESSAGES)


def test_common_idioms_render() -> None:
    template = (
        "{% generation %}{{ messages | tojson }}{% endgeneration %}{% for m in messages %}{% continue %}{% endfor %}"
        "{{ strftime_now('%Y') | length }}{% if tools %}x{% endif %}{{ messages[0]['content'].strip().split('e')[0] }}"
    )
    assert render(template, [Message("user", "<é>")]) == '[{"role": "user", "content": "<é>"}]4<é>'


HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "power": "{{ 10 ** 10 ** 10 }}",
    "repeat": "{{ 'a' * 1000000000000 }}",
    "repeat list": "{{ [1] * 1000000000000 }}",
    "double": "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "long output": "{% for i in range(99999) %}{{ messages[0].content * 1000 }}{% endfor %}",
    "centre": "{{ 'a'.center(10000000000) }}",
    "format": "{{ '{:>9999999999}'.format('a') }}",
    "percent": "{{ '%9999999999d' % 1 }}",
    "filter": "{{ 'a' | center(10000000000) }}",
    "range": "{{ range(10000000000) | list }}",
    "escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "change": "{{ messages.append(1) }}",
    "syntax": "{% for %}",
    "long": "{#" + "a" * 300_000 + "#}",
    "undefined": "{{ nothing.at.all }}",
}


@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_template_fails_in_one_sentence_and_in_time(template: str) -> None:
    start = time.perf_counter()
    with pytest.raises(TemplateError) as caught:
        render(template, [Message("user", "abcdefgh")])
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - start < 20
