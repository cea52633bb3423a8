"""What is fed to the model, checked before anything runs: a person's prompt, or a filler of exactly N tokens.

A run that cannot work is refused here, in one sentence that names the count and the limit, so that no index kernel ever
sees an empty or an over-long prompt. A filler is plain English of our own, cut by tokens between the chat template's
head and tail: the count is exact for any tokenizer, at the price of an end in the middle of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from tokenizers import Tokenizer

from engine.chat import ChatText, Message, TemplateError, chat_text, encode
from engine.runner import Prompt
from engine.text import pieces
from telemetry.protocol import SYNTHETIC_TEXT_NOTE, RunRequest

FILLER = """\
Before a language model can read a sentence, the sentence has to become numbers. A program called a tokenizer cuts it \
into pieces. Common words stay whole, rare words fall into parts, and a single emoji may need three or four pieces. \
Every piece has a number, and that number picks a row from a large table. The row is the piece's first meaning, a list \
of a few hundred or a few thousand values that the rest of the model will change step by step.

The model then works through its layers. In each layer every piece looks back at the pieces before it and gathers what \
it needs: a name that was mentioned at the start, the verb that belongs to a noun, the language of the text. After \
looking back, each piece is worked on alone by two wide matrices. Then the next layer does the same with its weights. \
When the last layer is done, the final piece holds a guess about what comes next.

Reading a prompt is quick, because all of its pieces are known at once. The chip fetches a matrix from memory and uses \
it for hundreds of pieces before it fetches the next one. Most of the time goes into arithmetic, and the arithmetic \
units are busy. Engineers call this part prefill. What the pieces have to remember for later, their keys and values, \
is put into a cache, so that nobody has to read the prompt a second time.

Writing is different. The next piece is not known until the one before it has been chosen, so the model must take its \
steps one by one. For every single piece the chip fetches all of its weights from memory again, multiplies each of \
them once, and throws them away. The arithmetic units wait most of the time, while the memory bus is full. Engineers \
call this part decode. It is why a chip that reads a page in a blink may take half a minute to write one.

There are several ways to make writing faster. Weights can be stored in fewer bits, so that fewer bytes must travel. \
Many people's answers can be written in the same step, so that one trip through memory serves them all. A small model \
can guess several pieces ahead and let the large one check them together. None of these makes the arithmetic faster. \
Each of them makes better use of the same trip through memory.

A library makes a good picture of it. Reading is like a class of students who share one book: it is carried to the \
table once, and everybody works from it. Writing is like a single student who needs one word from every book on every \
shelf, walks the whole length of the library to collect them, writes the word down, and starts to walk again. A faster \
pen would not help. Lighter books would.

"""

_MARK = "SILICONSCOPEFILLER"


class Tokens(Protocol):
    """The part of a loaded model that prompts need."""

    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def chat_template(self) -> str | None: ...
    @property
    def bos_token(self) -> str | None: ...
    @property
    def eos_token(self) -> str | None: ...
    @property
    def bos_id(self) -> int | None: ...


def prepare(model: Tokens, request: RunRequest, limit_tokens: int) -> Prompt:
    """The prompt of ``request``. ``limit_tokens``: what prompt and answer together may have.

    Raises ValueError with a sentence for a request that cannot run.
    """
    check_request(request)
    if request.prompt_tokens is not None:
        _check_count(request.prompt_tokens, request.max_new_tokens, limit_tokens)
        ids, notes = _filler(model, request, request.prompt_tokens)
    else:
        text = _chat(model, request, request.prompt or "")
        ids, notes = encode(model.tokenizer, text, model.bos_id), text.notes
    _check_count(len(ids), request.max_new_tokens, limit_tokens)
    return Prompt(tuple(ids), pieces(model.tokenizer, ids), notes)


def compile_template(model: Tokens) -> None:
    """Make the chat template ready before a request waits for it. What is wrong with it, a run will say."""
    with suppress(TemplateError):
        _chat(model, RunRequest(), "Hi")


def check_request(request: RunRequest) -> None:
    """What can be said without a model. Raises ValueError with a sentence."""
    if (request.prompt is None) == (request.prompt_tokens is None):
        raise ValueError("Give either a prompt or a number of prompt tokens.")
    if request.prompt is not None and not request.prompt.strip():
        raise ValueError("The prompt is empty: write something for the model to read.")
    if request.prompt_tokens is not None and request.prompt_tokens < 1:
        raise ValueError(f"A prompt needs at least one token; {request.prompt_tokens} was asked.")
    if request.max_new_tokens < 1:
        raise ValueError(f"At least one new token must be asked for; {request.max_new_tokens} was.")


def _check_count(n_prompt: int, n_new: int, limit: int) -> None:
    if n_prompt < 1:
        raise ValueError("The prompt has no tokens: write something for the model to read.")
    if n_prompt + n_new > limit:
        raise ValueError(
            f"The prompt has {n_prompt:,} tokens and {n_new:,} new ones are asked for, but this model's context here "
            f"holds {limit:,}: shorten the prompt or the answer."
        )


def _chat(model: Tokens, request: RunRequest, content: str) -> ChatText:
    if not request.chat:
        text = f"{request.system}\n\n{content}" if request.system else content
        return ChatText(text, rendered=False)
    messages = [Message("user", content)]
    if request.system:
        messages.insert(0, Message("system", request.system))
    return chat_text(model.chat_template, messages, model.bos_token or "", model.eos_token or "")


def _filler(model: Tokens, request: RunRequest, n_tokens: int) -> tuple[list[int], tuple[str, ...]]:
    text = _chat(model, request, _MARK)
    head_text, _, tail_text = text.text.rpartition(_MARK)
    # A plain prompt's BOS comes with the empty text; a template wrote its own into the head.
    head = encode(model.tokenizer, ChatText(head_text, text.rendered), model.bos_id)
    tail: list[int] = model.tokenizer.encode(tail_text, add_special_tokens=False).ids
    room = n_tokens - len(head) - len(tail)
    if room < 1:
        raise ValueError(
            f"With this model's chat template a filler prompt has at least {len(head) + len(tail) + 1} tokens; "
            f"{n_tokens} was asked."
        )
    return [*head, *_filler_ids(model.tokenizer, room), *tail], (*text.notes, SYNTHETIC_TEXT_NOTE)


def _filler_ids(tokenizer: Tokenizer, count: int) -> Sequence[int]:
    ids: list[int] = tokenizer.encode(FILLER, add_special_tokens=False).ids
    rounds = -(-count // len(ids))
    return (ids * rounds)[:count]
