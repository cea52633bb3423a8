"""From logits to the next token: greedy, or temperature with top-p from a generator of its own.

The generator is the run's, never torch's global one, so a seed gives the same run whatever else used random numbers.
Not covered: top-k, penalties, grammars.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen token and its probability under the model itself (temperature 1, no cut)."""

    token_id: int
    prob: float


class Sampler:
    """Chooses one token a call. Raises ValueError for settings that mean nothing."""

    def __init__(self, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0) -> None:
        if not 0.0 <= temperature <= 10.0:
            raise ValueError(f"The temperature must lie between 0 and 10; {temperature} was asked.")
        if not 0.0 < top_p <= 1.0:
            raise ValueError(f"top-p must lie above 0 and at most at 1; {top_p} was asked.")
        self._temperature = temperature
        self._top_p = top_p
        # A generator on the CPU draws the same numbers whichever device made the logits.
        self._generator = torch.Generator().manual_seed(seed % 2**63)

    def choose(self, logits: Tensor) -> Choice:
        """``logits`` (V,) float32 on any device. Waits for the device: the token is then known on the host."""
        if logits.device.type == "mps":
            logits = logits.cpu()  # it has no float64
        index = torch.argmax(logits) if self._temperature == 0.0 else self._draw(logits)
        prob = torch.exp(logits[index] - torch.logsumexp(logits, 0))
        token_id, p = torch.stack((index.double(), prob.double())).tolist()  # one transfer for both
        if p != p:
            raise ValueError("The model's output is not a number; this precision does not work here.")
        return Choice(int(token_id), min(1.0, p))

    def _draw(self, logits: Tensor) -> Tensor:
        probs = torch.softmax(logits.double() / self._temperature, 0)
        draw = float(torch.rand((), generator=self._generator, dtype=torch.float64))
        ordered, order = torch.sort(probs, descending=True, stable=True)
        cumulative = torch.cumsum(ordered, 0)
        # The nucleus is the smallest head whose mass reaches top_p; the first token always belongs to it.
        size = int((cumulative < self._top_p).sum().clamp(max=probs.numel() - 1)) + 1
        mass = cumulative[size - 1]
        place = (cumulative[:size] < draw * mass).sum().clamp(max=size - 1)
        return order[place]
