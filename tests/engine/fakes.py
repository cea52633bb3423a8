"""A model that says a script, behind the same seams as the real one, so that runs can be tested without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.ceilings import Plan
from engine.host import cpu_name
from engine.machine import Machine
from engine.precisions import PrecisionSupport
from sim.costs import WeightBytes, weight_bytes
from sim.specs import ModelSpec

SPEC = ModelSpec("toy", "llama", 2, 64, 4, 2, 16, 128, 257, True, 512, "made up for tests")
EOS = 256
QUICK = Plan(read_bytes=(1 << 20,), squares=(32,), rows=8, trial_s=1e-4, compute_budget_s=0.1, own_size_budget_s=0.01)
MACHINE = Machine(torch.device("cpu"), cpu_name(), None, None, None, None, 1)


def byte_tokenizer() -> Tokenizer:
    """One token a byte, in the alphabet's order, and an end of text."""
    alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(alphabet, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def ids_of(text: str) -> list[int]:
    ids: list[int] = byte_tokenizer().encode(text, add_special_tokens=False).ids
    return ids


class ScriptedBackend:
    """Says ``script`` token by token, until ``break_after`` has it fail."""

    path = "native"
    prefill_chunk = 8
    kv_bytes_per_token = 512
    kv_bytes_per_element = 4.0
    activation_bytes_per_element = 4.0
    options: dict[str, Any] = {}  # noqa: RUF012
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        script: Sequence[int],
        capacity_tokens: int = 512,
        precision: str = "fp32",
    ) -> None:
        self.spec, self.device, self.precision = SPEC, torch.device("cpu"), precision
        self.capacity_tokens = capacity_tokens
        self._script, self._said = list(script), 0
        self._fails_after: int | None = None
        self._error: BaseException = RuntimeError()
        self.calls: list[tuple[str, int, int]] = []
        self.closed = False

    def break_after(self, said: int, error: BaseException) -> None:
        """Raise ``error`` in every run from now on, once that many tokens have been said in it."""
        self._fails_after, self._error = said, error

    def weight_bytes(self, kind: str) -> WeightBytes:
        return weight_bytes(SPEC, 32.0)

    def compute_dtype(self, kind: str) -> str:
        return "fp32"

    def reset(self) -> None:
        self._said = 0

    def prefill(self, ids: torch.Tensor, position: int) -> torch.Tensor:
        self.calls.append(("prefill", len(ids), position))
        return self._logits()

    def decode(self, token: int, position: int) -> torch.Tensor:
        self.calls.append(("decode", token, position))
        self._said += 1
        return self._logits()

    def close(self) -> None:
        self.closed = True

    def _logits(self) -> torch.Tensor:
        if self._fails_after is not None and self._said >= self._fails_after:
            raise self._error
        logits = torch.zeros(SPEC.vocab)
        logits[self._script[self._said % len(self._script)]] = 9.0
        return logits


@dataclass
class ScriptedModel:
    """An open model whose backends say ``script``. Counts what is built, and how many are alive at once."""

    script: Sequence[int] = field(default_factory=lambda: ids_of("Hello"))
    name: str = "toy"
    revision: str | None = None
    spec: ModelSpec = SPEC
    tokenizer: Tokenizer = field(default_factory=byte_tokenizer)
    chat_template: str | None = None
    bos_token: str | None = None
    eos_token: str | None = "<|end|>"
    bos_id: int | None = None
    eos_ids: frozenset[int] = frozenset({EOS})
    special_ids: frozenset[int] = frozenset({EOS})
    size_bytes: int = 1000
    built: list[str] = field(default_factory=list)
    alive: list[ScriptedBackend] = field(default_factory=list)
    closed: bool = False

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]:
        return (
            PrecisionSupport("fp32", "fp32: 4 bytes a weight", True),
            PrecisionSupport("bf16", "bf16: 2 bytes a weight", True),
            PrecisionSupport("int4", "int4", False, "There is no 4-bit product here."),
        )

    def build(
        self,
        precision: str,
        device: torch.device,
        capacity_tokens: int,
        *,
        cuda_graph: bool = True,
        progress: Any = None,
    ) -> ScriptedBackend:
        for backend in self.alive:
            backend.close()
        self.alive.clear()
        self.built.append(precision)
        backend = ScriptedBackend(self.script, capacity_tokens, precision)
        self.alive.append(backend)
        return backend

    def close(self) -> None:
        self.closed = True
        self.alive.clear()


def gguf_at(path: Path) -> Path:
    """A file that starts like a model, which is all that the catalog looks at."""
    path.write_bytes(b"GGUF rest")
    return path
