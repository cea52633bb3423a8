"""A prediction in words: the verdict first, then the figures that carry it.

Bytes of traffic are in GB (1e9), sizes in memory in GiB (2^30), never mixed. Figures are rounded here and nowhere else.
"""

from __future__ import annotations

from sim.engines import Setting
from sim.memory import GIB
from sim.predict import Prediction
from sim.specs import ModelSpec

INTERVAL = "what held four of five measurements on devices that the constants had not seen"  # tenth to ninetieth

_BECAUSE = {
    "memory": "memory-bound: {gb} for each token",
    "compute": "compute-bound: {flops} for each token",
    "overhead": "overhead-bound: launches and coordination take longer than the work",
}


def verdict(spec: ModelSpec, setting: Setting, found: Prediction) -> str:
    """One or two sentences: what holds the answer up, and what would help."""
    if found.memory.fits is False:
        return f"{spec.name} in {setting.weights.name} on {_devices(setting, found)}: {found.memory.sentence()}"
    b = found.bytes_per_token
    flops = found.decode_intensity * b.total
    reason = _BECAUSE[found.decode_bound].format(gb=gb(b.total), flops=f"{flops / 1e9:.3g} GFLOP")
    helps = {
        "memory": "More FLOP/s change nothing there. Fewer bytes do.",
        "compute": "Fewer bytes change little there. More FLOP/s do.",
        "overhead": "A larger model or batch would use the device better.",
    }[found.decode_bound]
    return f"Decode is {reason}. {helps} Prefill is {found.prefill_bound}-bound."


def prediction_text(
    spec: ModelSpec, setting: Setting, prompt_tokens: int, new_tokens: int, batch: int, found: Prediction
) -> str:
    """The prediction as lines for a person."""
    b = found.bytes_per_token
    each = f" ({1 / found.tpot_s:.3g} each)" if found.tpot_s and batch > 1 else ""
    lines = [
        verdict(spec, setting, found),
        "",
        f"{spec.name}, {setting.weights.name}, on {_devices(setting, found)}, {setting.engine.family}"
        f" ({setting.engine.backend}); {prompt_tokens:,} tokens in, {new_tokens:,} out, batch {batch:,}",
        f"  time to first token   {_span(found.ttft_s, found.ttft_interval_s)}",
        f"  time per token        {_span(found.tpot_s, found.tpot_interval_s)}",
        f"  reading               {rate(found.prefill_tok_s)}   {share(found.mfu)} of {_peak(setting)}",
        f"  writing               {rate(found.decode_tok_s)}{each}   {share(found.mbu)} of the bandwidth",
        f"  bytes for each token  {gb(b.total)}: weights {gb(b.weights)}, KV read {gb(b.kv_read)},"
        f" KV written {gb(b.kv_write)}, activations {gb(b.activations)}",
        f"  KV cache              {found.kv_bytes_per_token:,} bytes a token of context",
        f"  intensity             prefill {found.prefill_intensity:.3g}, decode {found.decode_intensity:.3g} FLOP/byte",
        f"  memory                {found.memory.sentence()} Weights {found.memory.weights_bytes / GIB:.1f} GiB,"
        f" KV {found.memory.kv_bytes / GIB:.1f} GiB.",
    ]
    if found.ttft_interval_s:
        lines.append(f"In brackets: {INTERVAL}.")
    return "\n".join(lines)


def gb(n_bytes: float) -> str:
    """Decimal units, three figures."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.3g} bytes"


def _devices(setting: Setting, found: Prediction) -> str:
    return setting.hardware.name if found.devices == 1 else f"{found.devices} x {setting.hardware.name}"


def _span(seconds: float | None, interval: tuple[float, float] | None) -> str:
    if seconds is None or interval is None:
        return "- (it does not fit)"
    return f"{duration(seconds)}  [{duration(interval[0])} .. {duration(interval[1])}]"


def duration(value: float) -> str:
    """Milliseconds below a second."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def rate(value: float | None) -> str:
    """Tokens a second; a dash is unknown."""
    return "-" if value is None else f"{value:,.0f} tok/s" if value >= 100 else f"{value:.3g} tok/s"


def share(value: float | None) -> str:
    """Percent of a ceiling; a dash is unknown."""
    return "-" if value is None else f"{value:.0%}"


def _peak(setting: Setting) -> str:
    return "the kernels' peak" if setting.tensor_parallel == 1 else "the kernels' peak on all devices"
