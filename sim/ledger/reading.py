"""Claims about reading the prompt: how long it takes, at what intensity, and what it leaves behind (C1, C3 to C5)."""

from __future__ import annotations

from sim.bounds import Bound, bound
from sim.costs import kv_bytes_per_token
from sim.ledger.claim import STORY_READ_S, TOKENS_READ, USUAL_MFU, Claim, StageSetting, percent, span, verdict
from sim.memory import GIB

# Large bf16 products, n = 8192 and best of shapes: the share of the dense peak that bare matrix products reach.
H100_MATMUL_TFLOPS = 794.5
BEST_MFU = 0.75  # of a published prefill of a whole model


def claims() -> tuple[Claim, ...]:
    """Computed afresh, in the order of their numbers."""
    return _read_in_100_ms(), _over_100_flops_per_byte(), _tensor_cores_at_95_percent(), _prefill_fills_the_cache()


def _read_in_100_ms() -> Claim:
    small, middle, large = (bound(m, "H100 SXM", "bf16") for m in ("Llama-3-8B", "Llama-2-13b", "Llama-3-70B"))
    low, high = USUAL_MFU
    times = [small.compute_s(TOKENS_READ, share) for share in USUAL_MFU]
    return Claim(
        id="C1",
        says="2,000 words are read in 100-120 ms.",
        figure="120 ms",
        ours=(
            f"{TOKENS_READ:,} tokens on one H100 at {percent(low)} to {percent(high)} of its dense bf16 peak: "
            f"{span(times[0] * 1e3, times[1] * 1e3)} ms for an 8B; {middle.compute_s(TOKENS_READ, high) * 1e3:.0f} ms "
            f"for a 13B and {large.compute_s(TOKENS_READ, high):.2f} s for a 70B at {percent(high)}."
        ),
        verdict=verdict(large.compute_s(TOKENS_READ, high) <= STORY_READ_S, min(times) <= STORY_READ_S),
        condition="an 8B reads on an H100-class GPU, or a 13B at the upper end of what engines reach.",
        setting=StageSetting(small.spec.name, small.hardware.name, "bf16"),
        basis="40 to 60 % of the peak is what published prefills of whole models reach",
    )


def _over_100_flops_per_byte() -> Claim:
    h100, h200, rtx = (bound("Llama-3-8B", device, "bf16") for device in ("H100 SXM", "H200", "RTX 4090"))
    threshold, chunk = _tokens_for(h100, 100), 256
    side = "compute-bound" if h100.is_compute_bound(chunk) else "memory-bound"
    return Claim(
        id="C3",
        says="Prefill is matrix times matrix, over 100 FLOPs for each byte.",
        figure="> 100 FLOP/byte",
        ours=(
            f"{h100.cost(TOKENS_READ).intensity_flops_per_byte:,.0f} FLOP/byte for {TOKENS_READ:,} tokens of an 8B in "
            f"16 bit. It grows with the tokens in one pass, and compute is the limit only right of the ridge: "
            f"{h100.ridge_flops_per_byte:.0f} on an H100, {h200.ridge_flops_per_byte:.0f} on an H200, "
            f"{rtx.ridge_flops_per_byte:.0f} on an RTX 4090. A chunk of {chunk} is {side} on an H100."
        ),
        verdict=verdict(threshold <= 1, threshold <= TOKENS_READ),
        condition=f"{threshold} tokens or more go through the weights in one pass, in 16 bit.",
        setting=StageSetting("Meta-Llama-3-8B", h100.hardware.name, "bf16"),
    )


def _tokens_for(b: Bound, intensity: float) -> int:
    """The fewest tokens in one pass that reach an intensity."""
    tokens = 1
    while b.cost(tokens).intensity_flops_per_byte < intensity:
        tokens += 1
    return tokens


def _tensor_cores_at_95_percent() -> Claim:
    h100 = bound("Llama-3-8B", "H100 SXM", "bf16")
    bare = H100_MATMUL_TFLOPS * 1e12 / h100.flops_per_s
    low, high = USUAL_MFU
    return Claim(
        id="C4",
        says="Tensor cores are saturated at over 95 % while the prompt is read (94 % in its simulator).",
        figure="94 to 95 %",
        ours=(
            f"Of the published peak, a bare matrix product reaches {percent(bare)} on an H100 and whole prefills "
            f"{percent(low)} to {percent(high)}, the best about {percent(BEST_MFU)}."
        ),
        verdict=verdict(BEST_MFU >= 0.94, bare > BEST_MFU),
        condition="it is the counter of busy tensor pipes, read during large products; it is not useful work of peak.",
        setting=StageSetting("Meta-Llama-3-8B", h100.hardware.name, "bf16"),
        basis="bare product: ml-engineering's measured 794.5 TFLOP/s; prefills: published benchmarks",
    )


def _prefill_fills_the_cache() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    token = kv_bytes_per_token(b.spec, 2)
    s = b.spec
    return Claim(
        id="C5",
        says="Prefill computes attention for all prompt tokens once and stores keys and values for the second phase.",
        figure="stored in VRAM",
        ours=(
            f"2 x {s.n_layers} layers x {s.n_kv_heads} KV heads x {s.head_dim} wide x 2 bytes = "
            f"{token / 1024:.0f} KiB a token for Llama-3-70B in 16 bit: {token * TOKENS_READ / GIB:.2f} GiB "
            f"for {TOKENS_READ:,} tokens."
        ),
        verdict="holds",
        condition="always; its size depends on KV heads, not on attention heads.",
        setting=StageSetting(s.name, b.hardware.name, "int8"),
    )
