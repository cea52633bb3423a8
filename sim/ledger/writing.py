"""Claims about writing the answer: its time, its bytes, and what it leaves idle (C2, C1 with C2, C6 to C13)."""

from __future__ import annotations

from sim.bounds import bound
from sim.hardware import find_hardware
from sim.ledger.claim import (
    STORY_READ_S,
    STORY_WRITE_S,
    TOKENS_READ,
    TOKENS_WRITTEN,
    USUAL_MBU,
    USUAL_MFU,
    Claim,
    StageSetting,
    percent,
    span,
    verdict,
)
from sim.memory import GIB, memory_needed

STORY_RATE = 30  # tokens a second that the story asks of a 70B
PCIE_BYTES_PER_S = 55e9  # what a x16 link of the fifth generation delivers
EAGER_MBU = 0.17  # eager PyTorch: launches, not memory, take most of a step
STORY_MBU = 0.88
MEASURED_4090_TOK_S = 37  # a 70B at 2.5 bits a weight on one RTX 4090, as published


def claims() -> tuple[Claim, ...]:
    """Computed afresh, in the order of their numbers."""
    return (
        _written_in_6_s(),
        _both_on_one_machine(),
        _one_flop_per_byte(),
        _tensor_cores_at_4_percent(),
        _bandwidth_at_88_percent(),
        _70_gb_for_one_token(),
        _two_terabytes_a_second(),
        _a_4090_cannot(),
        _14_000_cores(),
        _95_percent_wasted(),
    )


def _written_in_6_s() -> Claim:
    slow, fast = bound("Llama-2-13b", "EPYC 9654", "bf16"), bound("Llama-3-8B", "H100 SXM", "bf16")
    large = bound("Llama-3-70B", "H200", "bf16")
    cpu, gpu = ([TOKENS_WRITTEN * b.decode_s(TOKENS_READ, share=s) for s in USUAL_MBU] for b in (slow, fast))
    rate = TOKENS_WRITTEN / STORY_WRITE_S
    return Claim(
        id="C2",
        says="A 50-word answer takes 5 to 10 seconds (6,200 ms).",
        figure="6.2 s",
        ours=(
            f"That is {rate:.1f} tokens a second: {large.read_bytes() * rate / 1e12:.1f} TB/s for a 70B in 16 bit. "
            f"A 13B in 16 bit on a server CPU takes {span(*cpu, form='.1f')} s; "
            f"an 8B on an H100 {span(*gpu, form='.2f')} s."
        ),
        verdict=verdict(min(gpu) >= 5, max(cpu) >= 5),
        condition="a large model has little bandwidth: a 13B on a CPU, or weights streamed over PCIe.",
        setting=StageSetting(slow.spec.name, slow.hardware.name, "bf16"),
        basis="60 to 85 % of the published bandwidth is what good decode kernels reach",
    )


def _both_on_one_machine() -> Claim:
    h100, rtx = (bound("Llama-3-8B", d, "bf16") for d in ("H100 SXM", "RTX 4090"))
    mfu, mbu = USUAL_MFU[1], 0.7
    asked = (STORY_WRITE_S / TOKENS_WRITTEN) / (STORY_READ_S / TOKENS_READ)
    at_best = [min(TOKENS_READ, b.ridge_flops_per_byte * mfu / mbu) for b in (h100, rtx)]  # 16 bit: 2 bytes / 2 FLOPs
    small = bound("Llama-3-8B", "RTX 4090", "Q4_0")
    streamed_s = small.read_bytes() / PCIE_BYTES_PER_S
    return Claim(
        id="C1+C2",
        says="Both on the same machine: read in 120 ms, written in 6,200 ms.",
        figure="120 ms and 6.2 s",
        ours=(
            f"The pair asks for reading a token {asked:,.0f} times faster than writing one. With its weights in its "
            f"memory an H100 can do about {at_best[0]:.0f} times in 16 bit, an RTX 4090 {at_best[1]:.0f}; in total "
            f"reading is the shorter only above {TOKENS_READ / TOKENS_WRITTEN:.0f} times. An 8B at {small.form.bits} "
            f"bits streamed over PCIe takes {streamed_s * 1e3:.0f} ms a pass, {streamed_s * TOKENS_WRITTEN:.1f} s "
            "for the answer."
        ),
        verdict=verdict(max(at_best) >= asked, streamed_s <= STORY_READ_S and streamed_s * TOKENS_WRITTEN >= 5),
        condition="both phases wait for one slow thing, such as weights streamed over PCIe or kernel launches.",
        setting=StageSetting("Meta-Llama-3-8B", h100.hardware.name, "bf16"),
    )


def _one_flop_per_byte() -> Claim:
    sixteen, eight, four = (
        bound("Llama-3-8B", "H100 SXM", f).cost(1, 16).intensity_flops_per_byte for f in ("bf16", "int8", "Q4_0")
    )
    b = bound("Llama-3-8B", "H100 SXM", "bf16")
    far, sharing = b.cost(1, 1_000_000).intensity_flops_per_byte, b.spec.n_heads // b.spec.n_kv_heads
    return Claim(
        id="C6",
        says="Decode is matrix times vector, about 1 FLOP for each byte.",
        figure="~1 FLOP/byte",
        ours=(
            f"{sixteen:.1f} FLOP/byte in 16 bit, {eight:.1f} in 8 bit, {four:.1f} in Q4_0 for an 8B at batch 1 and "
            f"short context. A long context pulls it towards the {sharing} query heads that share a KV head: {far:.1f} "
            "in 16 bit with a million tokens cached."
        ),
        verdict=verdict(max(eight, four) < 1.5, 0.5 < sixteen < 1.5),
        condition="weights are in 16 bit, the batch is 1 and the context short.",
        setting=StageSetting("Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16", prompt_tokens=16),
    )


def _useful_shares() -> tuple[float, float]:
    """Least and greatest useful share of the dense peak at batch 1 in 16 bit, over data-centre and GeForce GPUs."""
    found = []
    for device in ("H100 SXM", "H200", "RTX 4090", "A100 SXM4 80GB"):
        b = bound("Llama-3-8B", device, "bf16")
        found += [b.cost(1).flops / b.decode_s(share=share) / b.flops_per_s for share in USUAL_MBU]
    return min(found), max(found)


def _tensor_cores_at_4_percent() -> Claim:
    low, high = _useful_shares()
    return Claim(
        id="C7",
        says="Tensor cores drop to 4 % while the answer is written.",
        figure="4 %",
        ours=f"Useful work is {percent(low, 1)} to {percent(high, 1)} of the dense peak at batch 1 in 16 bit.",
        verdict=verdict(low <= 0.04 <= high, True),
        condition=(
            "it is the counter of busy pipes, which reads 0 for a kernel off the tensor cores and multiplies the "
            "useful share where a tile of 8 or 16 rows is mostly empty; it is shown as read, not derived."
        ),
        setting=StageSetting("Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16"),
    )


def _bandwidth_at_88_percent() -> Claim:
    low, high = USUAL_MBU
    return Claim(
        id="C8",
        says="Memory bandwidth hits 88 % while the answer is written.",
        figure=percent(STORY_MBU),
        ours=(
            f"Published decode reaches {percent(low)} to {percent(high)} of the data sheet's bandwidth; eager PyTorch "
            f"about {percent(EAGER_MBU)}, where launching kernels is the limit and neither memory nor compute."
        ),
        verdict=verdict(low >= STORY_MBU, high >= STORY_MBU - 0.05),
        condition="kernels are good, a step is one recorded graph, and the model is large enough to hide the launches.",
        setting=StageSetting("Meta-Llama-3-70B", "H100 SXM5 80GB", "int8"),
        basis="published decode speeds of whole models against bytes read",
    )


def _70_gb_for_one_token() -> Claim:
    eight, sixteen, four = (bound("Llama-3-70B", "H100 SXM", f).read_bytes() / 1e9 for f in ("int8", "bf16", "Q4_K_M"))
    return Claim(
        id="C9",
        says="All 70 GB of a 70B model's weights move for one token.",
        figure="70 GB",
        ours=f"{eight:.1f} GB in 8 bit, {sixteen:.0f} GB in 16 bit, {four:.0f} GB in 4 bit (Q4_K_M).",
        verdict=verdict(all(66 < x < 74 for x in (eight, sixteen, four)), 66 < eight < 74),
        condition="weights are in 8 bit.",
        setting=StageSetting("Meta-Llama-3-70B", "H100 SXM5 80GB", "int8"),
        basis="gpt-fast measured 69.1 GB a token for int8 (Llama-2-70B)",
    )


def _two_terabytes_a_second() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    needed = b.read_bytes() * STORY_RATE
    return Claim(
        id="C10",
        says="70 GB x 30 tokens a second = 2.1 TB/s.",
        figure="2.1 TB/s",
        ours=(
            f"{needed / 1e12:.2f} TB/s, {percent(needed / b.bytes_per_s)} of an H100's {b.bytes_per_s / 1e12:.2f} TB/s."
        ),
        verdict=verdict(False, 2.0 < needed / 1e12 < 2.2),
        condition="weights are in 8 bit and the batch is 1.",
        setting=StageSetting("Meta-Llama-3-70B", b.hardware.name, "int8"),
    )


def _a_4090_cannot() -> Claim:
    eight, low = bound("Llama-3-70B", "RTX 4090", "int8"), bound("Llama-3-70B", "RTX 4090", "2.5bpw")
    needs = [memory_needed(b.spec, b.form, 2, 2048, 1, b.hardware) for b in (eight, low)]
    bounds = [1 / b.decode_s() for b in (eight, low)]
    return Claim(
        id="C11",
        says="An RTX 4090 (1,000 GB/s) cannot write 30 tokens a second with a 70B.",
        figure="< 30 tok/s",
        ours=(
            f"In 8 bit its bandwidth allows {bounds[0]:.1f} tokens a second, and {needs[0].missing_bytes / GIB:.0f} "
            f"GiB are missing. At 2.5 bits a weight it {'fits' if needs[1].fits else 'does not fit'}, bandwidth allows "
            f"{bounds[1]:.0f}, and {MEASURED_4090_TOK_S} were measured."
        ),
        verdict=verdict(max(bounds) < STORY_RATE, bounds[0] < STORY_RATE),
        condition="weights are in 8 bit or more; at 2.5 bits a weight it is false.",
        setting=StageSetting("Meta-Llama-3-70B", "RTX 4090", "2.5bpw", prompt_tokens=512),
        basis="exllama at 2.5 bits a weight: 37 tokens a second, published",
    )


def _14_000_cores() -> Claim:
    pcie, sxm = find_hardware("H100 PCIe").cores or 0, find_hardware("H100 SXM").cores or 0
    return Claim(
        id="C12",
        says="14,000 cores produce one token.",
        figure="14,000 cores",
        ours=f"An H100 PCIe has {pcie:,} cores, an H100 SXM {sxm:,}.",
        verdict=verdict(round(pcie, -3) == round(sxm, -3) == 14_000, 14_000 <= pcie < 15_000),
        condition="the card is an H100 PCIe.",
        setting=StageSetting("Meta-Llama-3-70B", "H100 PCIe", "int8"),
    )


def _95_percent_wasted() -> Claim:
    low, high = _useful_shares()
    return Claim(
        id="C13",
        says="Running decode for one user wastes 95 % of the compute.",
        figure="95 %",
        ours=f"{percent(1 - high, 1)} to {percent(1 - low, 1)} of the dense peak is idle at batch 1 in 16 bit.",
        verdict=verdict(1 - high >= 0.95, 1 - low >= 0.95),
        condition="always at batch 1; it is an understatement.",
        setting=StageSetting("Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16"),
    )
