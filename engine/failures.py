"""What went wrong, as one sentence for a person; and whether the device can be used again in this process."""

from __future__ import annotations

import torch

OUT_OF_MEMORY = "The memory ran out: choose a shorter prompt, fewer bits a weight, or a smaller model."


def sentence(error: BaseException) -> str:
    """Our own errors speak for themselves; any other is named as a failure with its first line."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    # torch reports a failed allocation on the CPU as a plain RuntimeError.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return OUT_OF_MEMORY
    if isinstance(error, ValueError | LookupError):
        return text
    return f"The run failed: {text}"


def device_is_lost(error: BaseException) -> bool:
    """A CUDA kernel that faulted leaves a context in which every later call fails: only a new process helps."""
    lost: type[BaseException] | None = getattr(torch, "AcceleratorError", None)
    return lost is not None and isinstance(error, lost) and not isinstance(error, torch.OutOfMemoryError)
