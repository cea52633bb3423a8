"""What a session needs of an open model: text, shape, and backends built at a precision.

``engine.load.LoadedModel`` is the real one; a test's scripted model stands behind the same seam.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from engine.backend import Backend, Progress
from engine.precisions import PrecisionSupport
from engine.prompts import Tokens
from sim.specs import ModelSpec


class Model(Tokens, Protocol):
    @property
    def name(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def spec(self) -> ModelSpec: ...
    @property
    def eos_ids(self) -> frozenset[int]: ...
    @property
    def special_ids(self) -> frozenset[int]: ...
    @property
    def size_bytes(self) -> int | None: ...

    def precisions(self, device: torch.device) -> Sequence[PrecisionSupport]: ...

    def close(self) -> None:
        """Free what was built; the model itself may be opened again."""
        ...

    def build(
        self,
        precision: str,
        device: torch.device,
        capacity_tokens: int,
        *,
        cuda_graph: bool = True,
        progress: Progress | None = None,
    ) -> Backend:
        """A backend; the one built before is closed first."""
        ...


Opener = Callable[[str, Progress], Model]
