"""The passes that answer some equal requests: prompts in chunks, then one token a pass for all.

Kept apart from times, so that a prediction, a curve and a played simulation lay the same passes on the clock. All
requests arrive together; prompts are prefilled before anything is decoded, several short ones in a pass, a long one in
several passes. The last pass of a prompt yields its first token, so n new
tokens take n - 1 decode passes.

Not covered: arrival over time, prefill mixed with decode, eviction: the serving lab simulates those event by event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sim.checks import MOST_SEQUENCES, check_count
from sim.engines import Setting

LLAMA_CHUNK_TOKENS = 512  # llama.cpp's default ubatch
SERVER_CHUNK_TOKENS = 8192  # vLLM's and SGLang's default for a prefill


@dataclass(frozen=True, slots=True)
class Passes:
    """``count`` like passes: ``rows`` sequences from ``first`` on (the next pass takes the next rows), each of
    ``n_tokens`` new tokens on ``context`` cached ones."""

    count: int
    rows: int
    n_tokens: int
    context: int
    first: int = 0


def chunk_tokens(setting: Setting, prompt_tokens: int) -> int:
    """New tokens that the engine puts into one prefill pass by default."""
    if setting.engine.family == "llama.cpp":
        return LLAMA_CHUNK_TOKENS
    return SERVER_CHUNK_TOKENS if setting.engine.family == "server" else max(SERVER_CHUNK_TOKENS, prompt_tokens)


def prefill_passes(prompt_tokens: int, batch: int, chunk: int) -> list[Passes]:
    """The prefill passes; each chunk of a long prompt is counted once for all sequences.

    Raises ValueError with one sentence for counts that are no whole numbers from 1 on.
    """
    check_count("The prompt", prompt_tokens)
    check_count("The batch", batch, MOST_SEQUENCES)
    check_count("A chunk", chunk)
    if prompt_tokens > chunk:
        starts = range(0, prompt_tokens, chunk)
        return [Passes(batch, 1, min(chunk, prompt_tokens - at), at) for at in starts]
    rows = min(batch, chunk // prompt_tokens)
    whole, rest = divmod(batch, rows)
    passes = [Passes(whole, rows, prompt_tokens, 0)]
    return [*passes, Passes(1, rest, prompt_tokens, 0, first=whole * rows)] if rest else passes


def prefill_in_order(prompt_tokens: int, batch: int, chunk: int) -> Iterator[Passes]:
    """The prefill passes one by one, sequence after sequence. Raises ValueError as ``prefill_passes``."""
    passes = prefill_passes(prompt_tokens, batch, chunk)
    if prompt_tokens > chunk:
        for sequence in range(batch):
            for p in passes:
                yield replace(p, count=1, first=sequence)
        return
    for p in passes:
        for i in range(p.count):
            yield replace(p, count=1, first=p.first + i * p.rows)
