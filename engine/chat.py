"""From what a person said to the text and ids the model reads: chat templates, rendered with care.

A chat template is a program that came with a model file. It is rendered in jinja2's immutable sandbox under limits on
its length, its time, and the size of what it makes, so that a hostile one fails in one sentence instead of hanging
the engine. Templates differ in what they refuse; what this module changes to satisfy them it says in a note.

The limits hold inside this process: a trace function stops endless loops, guarded operators and strings stop
explosions. A template that finds a way around them still sits in the worker, which its caller can kill.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from types import FrameType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

MAX_TEMPLATE_CHARS = 256 * 1024
MAX_TEXT_CHARS = 8 * 1024 * 1024
MAX_RENDER_S = 2.0

NO_TEMPLATE_NOTE = "This model has no chat template: the prompt is continued as plain text."
FOLDED_NOTE = "This model's chat template takes no system message: it was put in front of the first question."
MERGED_NOTE = "This model's chat template wants roles to alternate: neighbouring messages were joined."


class TemplateError(ValueError):
    """The template cannot be used, in one sentence."""


class TemplateRefused(TemplateError):
    """The template itself raised: it does not take this list of messages."""


@dataclass(frozen=True, slots=True)
class Message:
    role: str  # system | user | assistant
    content: str


@dataclass(frozen=True, slots=True)
class ChatText:
    """The text that the model reads. ``rendered``: a template wrote it, and so wrote what special tokens it wants."""

    text: str
    rendered: bool
    notes: tuple[str, ...] = ()


def chat_text(template: str | None, messages: Sequence[Message], bos_token: str = "", eos_token: str = "") -> ChatText:
    """The prompt for ``messages``, ending where the assistant is to speak.

    A template that refuses the messages is asked again with the system message folded into the first user turn and
    neighbours of one role joined. Raises TemplateError when it refuses that too.
    """
    if template is None:
        return ChatText("\n\n".join(m.content for m in messages), False, (NO_TEMPLATE_NOTE,))
    try:
        return ChatText(render(template, messages, bos_token, eos_token), True)
    except TemplateRefused:
        folded = fold_system(messages)
        merged = merge_neighbours(folded)
        if merged == tuple(messages):
            raise
        text = render(template, merged, bos_token, eos_token)
    notes = ((FOLDED_NOTE,) if folded != tuple(messages) else ()) + ((MERGED_NOTE,) if merged != folded else ())
    return ChatText(text, True, notes)


def fold_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """System messages moved to the front of the first user turn."""
    system = "\n\n".join(m.content for m in messages if m.role == "system")
    rest = [m for m in messages if m.role != "system"]
    if system:
        first = next((i for i, m in enumerate(rest) if m.role == "user"), None)
        if first is None:
            rest.insert(0, Message("user", system))
        else:
            rest[first] = replace(rest[first], content=f"{system}\n\n{rest[first].content}")
    return tuple(rest)


def merge_neighbours(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages of one role that follow each other, joined into one."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            message = replace(message, content=f"{merged.pop().content}\n\n{message.content}")
        merged.append(message)
    return tuple(merged)


def encode(tokenizer: Tokenizer, text: ChatText, bos_id: int | None) -> list[int]:
    """The ids of a prompt with exactly one BOS if the model uses one, whoever wrote it.

    A template that writes BOS and a tokenizer that adds it give one; a template without it, read by a tokenizer that
    adds it, gives one as well.
    """
    ids: list[int] = tokenizer.encode(text.text, add_special_tokens=not text.rendered).ids
    if bos_id is None:
        return ids
    start = next((i for i, token in enumerate(ids) if token != bos_id), len(ids))
    if start or adds_bos(tokenizer, bos_id):
        return [bos_id, *ids[start:]]
    return ids


def adds_bos(tokenizer: Tokenizer, bos_id: int) -> bool:
    """Whether the tokenizer itself starts a text with ``bos_id``."""
    ids: list[int] = tokenizer.encode("a", add_special_tokens=True).ids
    return bool(ids) and ids[0] == bos_id


def render(template: str, messages: Sequence[Message], bos_token: str = "", eos_token: str = "") -> str:
    """The template's text for ``messages`` with the assistant's header at its end where the template has one.

    Raises TemplateRefused when the template raises, TemplateError when it is broken, too long, or runs too far.
    """
    if len(template) > MAX_TEMPLATE_CHARS:
        raise TemplateError("The model's chat template is too long to be one.")
    with _limits():
        return _render(template, messages, bos_token, eos_token)


def _render(template: str, messages: Sequence[Message], bos_token: str, eos_token: str) -> str:
    turns = [{"role": m.role, "content": m.content} for m in messages]
    try:
        stream = _compiled(template).generate(
            messages=turns, bos_token=bos_token, eos_token=eos_token, add_generation_prompt=True, tools=None
        )
        parts, size = [], 0
        for part in stream:
            size += _checked_size(len(part))
            _checked_size(size)
            parts.append(part)
        return "".join(parts)
    except TemplateError:
        raise
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise TemplateError(f"The model's chat template does not work: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise TemplateError("The model's chat template runs too far and was stopped.") from error


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with the operators and string methods that make much out of little held to a size."""

    intercepted_binops = frozenset({"*", "**", "%", "+"})
    _AMPLIFIERS = frozenset({"center", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sizes = [len(v) for v in (left, right) if isinstance(v, str | list | tuple)]
        numbers = [abs(v) for v in (left, right) if isinstance(v, int | float)]
        if operator == "*" and sizes and numbers:
            _checked_size(sizes[0] * int(numbers[0]))
        elif operator == "**" and (len(numbers) < 2 or max(numbers) > 64):
            raise TemplateError("The model's chat template raises a number to a power that no prompt needs.")
        elif operator == "%" and isinstance(left, str):
            raise TemplateError("The model's chat template formats text in a way that is not allowed here.")
        elif operator == "+" and sizes:
            _checked_size(sum(sizes))
        elif numbers:
            _checked_number(max(numbers))
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        """No sandboxed ``str.format`` either: a width alone fills memory."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str) and attr in self._AMPLIFIERS:
            return False
        return bool(super().is_safe_attribute(obj, attr, value))


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's words for training; here it only groups them."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as an instance's set

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    """Compiled once a model: that takes milliseconds, which would stand in every TTFT."""
    return _environment().from_string(template)


def _environment() -> _Environment:
    extensions: list[str | type[Extension]] = [_Generation, "jinja2.ext.loopcontrols"]
    # Not optimised: folding constants would run parts of the template while it is compiled.
    env = _Environment(trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=extensions)
    for name in ("center", "format", "indent", "wordwrap", "xmlattr", "urlize", "pprint"):
        env.filters.pop(name, None)
    env.filters["tojson"] = _to_json
    env.globals["raise_exception"] = _refuse
    env.globals["strftime_now"] = lambda pattern: datetime.now().strftime(str(pattern)[:100])
    env.globals.pop("lipsum", None)
    return env


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    # Templates want JSON as written, not jinja2's HTML-safe form.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=None if indent is None else min(int(indent), 8))


def _refuse(message: object) -> NoReturn:
    raise TemplateRefused(f"The model's chat template refuses this: {str(message)[:200]}")


def _checked_size(size: int) -> int:
    if size > MAX_TEXT_CHARS:
        raise TemplateError("The model's chat template makes more text than a prompt can hold.")
    return size


def _checked_number(number: float) -> None:
    if number > 2**63:
        raise TemplateError("The model's chat template computes with numbers that no prompt needs.")


@contextmanager
def _limits() -> Any:
    """Stops what runs inside after MAX_RENDER_S, or once a template's variable holds too long a text.

    A trace function sees every line of the compiled template and of what it calls; a loop has no other way past it.
    """
    deadline = time.perf_counter() + MAX_RENDER_S

    def watch(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        if time.perf_counter() > deadline:
            raise TemplateError("The model's chat template runs too long and was stopped.")
        if frame.f_code.co_filename == "<template>":
            for value in frame.f_locals.values():
                if isinstance(value, str):
                    _checked_size(len(value))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
