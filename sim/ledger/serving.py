"""Claims about serving and about words: batching, speculation, the takeaways, units (C14 to C23)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.bounds import Bound, bound
from sim.hardware import find_hardware
from sim.ledger.claim import (
    STORY_WORDS_READ,
    TOKENS_PER_WORD,
    TOKENS_READ,
    Claim,
    StageSetting,
    percent,
    span,
    verdict,
)
from sim.memory import kv_tokens_that_fit
from sim.speculation import speedup

USERS, STORY_THROUGHPUT_GAIN = 64, 10
GUESSES, STORY_SPECULATION_GAIN = 5, 2.5
SECONDS_PER_HOUR, MILLION = 3600, 1e6
PUBLISHED_GAINS = (1.3, 3.0)  # wall clock, over published benchmarks
CPU_VERIFY_PASSES = (1.7, 1.9)  # 4 to 8 rows over one, fp32 on a server CPU
PRICE = 1.0  # per hour, in the reader's own currency; the ratio is what is claimed


def claims() -> tuple[Claim, ...]:
    """Computed afresh, in the order of their numbers."""
    return (
        _batching_64_users(),
        _speculation_2_5_times(),
        _no_quality_loss(),
        _three_takeaways(),
        _which_machine(),
        _words_are_tokens(),
        _70_gb_for_one_word(),
        _one_parallel_pass(),
        _two_cards_in_one(),
        _batching_is_profit(),
    )


def _gain(b: Bound, batch: int, context: int) -> float:
    """Throughput of a batch over one sequence while memory is the limit."""
    return batch * b.decode_s(context) / b.decode_s(context, batch)


def _batching_64_users() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    contexts = (128, 2048, 8192)
    gains = [_gain(b, USERS, context) for context in contexts]
    left = kv_tokens_that_fit(b.spec, b.form, 2, b.hardware, USERS) or 0
    mixture = bound("Mixtral-8x7B", "H100 SXM", "int8")
    listed = ", ".join(f"{gain:.0f} at {context:,}" for gain, context in zip(gains, contexts, strict=True))
    return Claim(
        id="C14",
        says="Batching 64 users gives up to 10 times the throughput from the same weight stream.",
        figure="10x",
        ours=(
            f"While memory is the limit {USERS} users of a 70B in 8 bit get, by tokens of context: {listed} times. "
            f"Weights are shared, the KV cache is not: beside them one H100 holds {left:,} tokens for each user. A "
            f"mixture of experts gains less in a small batch: {_gain(mixture, 4, 128):.1f} times for 4 users of "
            f"Mixtral against {_gain(b, 4, 128):.1f}."
        ),
        verdict=verdict(min(gains) >= STORY_THROUGHPUT_GAIN and left >= max(contexts), gains[0] >= 10),
        condition="the model is dense, the context short, and the KV cache of all users fits.",
        setting=StageSetting(b.spec.name, b.hardware.name, "int8", prompt_tokens=128, batch=USERS),
    )


def _speculation_2_5_times() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    draft = bound("Llama-3.2-1B", "H100 SXM", "int8").read_bytes() / b.read_bytes()
    needed = {
        cost: acceptance_for(STORY_SPECULATION_GAIN, GUESSES, cost, verify)
        for cost, verify in ((draft, 1.0), (0.05, 1.0), (0.10, 1.0))
    }
    dear = 1.5
    dearer = acceptance_for(STORY_SPECULATION_GAIN, GUESSES, draft, dear)
    said = [f"{a:.2f} at a draft cost of {c:.3f}" for c, a in needed.items() if a is not None]
    return Claim(
        id="C15",
        says="A 1B draft that guesses 5 tokens makes a 70B 2.5 times faster.",
        figure="2.5x",
        ours=(
            f"It takes an acceptance of {', '.join(said)} of a target step"
            + (f"; {dearer:.2f} when verifying costs {dear} steps" if dearer else "")
            + f". Published gains are {span(*PUBLISHED_GAINS, form='.1f')} times, and in a large batch it can lose."
        ),
        verdict=verdict(False, needed[draft] is not None),
        condition=f"{percent(needed[draft] or 1)} or more of the guesses are right and memory is the limit.",
        setting=StageSetting(b.spec.name, b.hardware.name, "int8"),
        basis="published speculation benchmarks",
    )


def acceptance_for(gain: float, guesses: int, draft_cost: float, verify_cost: float) -> float | None:
    """The acceptance from which speculation gains that much; None where even 1 does not. Found by halving."""
    if speedup(1.0, guesses, draft_cost, verify_cost) < gain:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if speedup(middle, guesses, draft_cost, verify_cost) >= gain else (middle, high)
    return high


def _no_quality_loss() -> Claim:
    gap = exact_distribution_gap((0.5, 0.3, 0.15, 0.05), (0.1, 0.2, 0.3, 0.4))
    return Claim(
        id="C16",
        says="Speculation loses no quality.",
        figure="zero loss",
        ours=(
            "Greedy, the text is token for token the same. Sampled, rejection keeps the target's distribution: for an "
            f"example of four tokens and a bad draft the largest difference is {gap:.0e}."
        ),
        verdict=verdict(gap < 1e-12, True),
        condition="always in exact arithmetic; kernels of another batch size can round a near-tie the other way.",
        setting=StageSetting("Meta-Llama-3-70B", "H100 SXM5 80GB", "int8"),
        basis="Leviathan et al. 2023 (arXiv:2211.17192), appendix A.1",
    )


def exact_distribution_gap(target: Sequence[float], draft: Sequence[float]) -> float:
    """Largest difference between the target's distribution and what one round of rejection sampling draws.

    A guess x of the draft q is kept with probability min(1, p/q); otherwise one is drawn from max(0, p - q), normed.
    """
    kept = [min(p, q) for p, q in zip(target, draft, strict=True)]
    rest = [max(0.0, p - q) for p, q in zip(target, draft, strict=True)]
    drawn = [k + (1 - sum(kept)) * r / sum(rest) for k, r in zip(kept, rest, strict=True)]
    return max(abs(d - p) for d, p in zip(drawn, target, strict=True))


def _three_takeaways() -> Claim:
    b = bound("Llama-3-8B", "H100 SXM", "bf16")
    prompt = _first(lambda n: b.is_compute_bound(n))
    batch = _first(lambda n: b.is_compute_bound(1, 128, n))
    weights = b.read_bytes()
    context = _first(lambda n: b.cost(1, n).kv_read_bytes > weights)
    return Claim(
        id="C17",
        says="Prefill is compute-bound, decode is memory-bound, memory bandwidth and batching rule.",
        figure="three takeaways",
        ours=(
            f"For an 8B in 16 bit on an H100: a prompt under {prompt} tokens is memory-bound, a batch of {batch} short "
            f"sequences makes decode compute-bound, and from {context:,} tokens of context the KV cache, not the "
            "weights, is what a token waits for."
        ),
        verdict=verdict(prompt <= 1, 1 < prompt < TOKENS_READ),
        condition="the prompt is long, the batch small to moderate and the context not extreme.",
        setting=StageSetting(b.spec.name, b.hardware.name, "bf16"),
    )


def _first(true_from: Callable[[int], bool]) -> int:
    """The smallest count from which a condition holds, found by doubling and halving."""
    high = 1
    while not true_from(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true_from(middle) else (middle, high)
    return high


def _which_machine() -> Claim:
    found = []
    for device in ("H100 SXM", "TPU v6e", "EPYC 9654"):
        b = bound("Llama-3-8B", device, "int8")
        rate, watts = 1 / b.decode_s(), b.hardware.tdp_w
        energy = f" and {rate / watts:.2f} a joule" if watts else ""
        found.append(f"{b.hardware.name}: {rate:.0f} tokens a second{energy}")
    return Claim(
        id="C18",
        says="Next: GPU against TPU against CPU; when does running on cheap CPUs save money?",
        figure="no figure",
        ours=f"At batch 1 bandwidth decides. Bounds for an 8B in 8 bit: {'; '.join(found)}.",
        verdict="holds when",
        condition="a processor's GB/s cost less than a GPU's at your prices and one user's speed is enough.",
        setting=StageSetting("Meta-Llama-3-8B", "EPYC 9654 (1 socket)", "int8"),
    )


def _words_are_tokens() -> Claim:
    return Claim(
        id="C19",
        says="2,000 words are 2,000 tokens: words and tokens are used as one.",
        figure="2,000 tokens",
        ours=f"{STORY_WORDS_READ:,} English words are about {TOKENS_READ:,} tokens, more in code and other languages.",
        verdict=verdict(TOKENS_READ == STORY_WORDS_READ, False),
        condition=f"rates are in tokens; a word takes {TOKENS_PER_WORD:.1f} of them on average.",
        setting=StageSetting("Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16"),
    )


def _70_gb_for_one_word() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    word_gb = b.read_bytes() * TOKENS_PER_WORD / 1e9
    return Claim(
        id="C20",
        says="70 GB are streamed for one word.",
        figure="70 GB a word",
        ours=f"{b.read_bytes() / 1e9:.1f} GB for one token in 8 bit, so {word_gb:.0f} GB for a word on average.",
        verdict=verdict(word_gb < 74, False),
        condition="70 GB are right for one token in 8 bit.",
        setting=StageSetting(b.spec.name, b.hardware.name, "int8"),
    )


def _one_parallel_pass() -> Claim:
    b = bound("Llama-3-70B", "H100 SXM", "int8")
    rows = GUESSES + 1
    dense = b.step_s(rows, TOKENS_READ) / b.step_s(1, TOKENS_READ)
    mixture = bound("Mixtral-8x7B", "H100 SXM", "int8")
    sparse = mixture.step_s(rows, TOKENS_READ) / mixture.step_s(1, TOKENS_READ)
    return Claim(
        id="C21",
        says="The 70B verifies all 5 guesses in 1 parallel prefill pass.",
        figure="1 pass",
        ours=(
            f"{rows} rows go through in one pass. Bound by memory it costs {dense:.2f} times a pass of one row; "
            f"{sparse:.1f} times for Mixtral, whose rows need different experts."
        ),
        verdict=verdict(False, dense < 1.1),
        condition=(
            "the model is dense and memory is the limit; a CPU in fp32 was measured at "
            f"{span(*CPU_VERIFY_PASSES, form='.1f')} passes."
        ),
        setting=StageSetting(b.spec.name, b.hardware.name, "int8"),
        basis="measured verify passes of 4 to 8 rows on a CPU",
    )


def _two_cards_in_one() -> Claim:
    pcie, sxm = find_hardware("H100 PCIe"), find_hardware("H100 SXM")
    said = [f"{d.name}: {d.cores or 0:,} cores, {(d.bandwidth_bytes_per_s or 0) / 1e9:,.0f} GB/s" for d in (pcie, sxm)]
    return Claim(
        id="C22",
        says="An H100 with 14,000 cores and 3,350 GB/s.",
        figure="14,000 cores, 3,350 GB/s",
        ours=f"These are two cards. {'; '.join(said)}.",
        verdict=verdict(pcie.cores == sxm.cores, False),
        condition="each figure is right for one of the two.",
        setting=StageSetting("Meta-Llama-3-70B", sxm.name, "int8"),
    )


def _batching_is_profit() -> Claim:
    b = bound("Llama-3-8B", "H100 SXM", "bf16")
    context = 1024
    costs = {n: price_of_a_million_tokens(PRICE, n / b.step_s(1, context, n)) for n in (1, 8, USERS)}
    listed = ", ".join(f"{cost:.3f} at batch {n}" for n, cost in costs.items())
    return Claim(
        id="C23",
        says="Continuous batching is what makes LLM servers profitable.",
        figure="no figure",
        ours=(
            f"For {PRICE:.0f} an hour, a million written tokens of an 8B on an H100 cost at least {listed}: "
            f"{costs[1] / costs[USERS]:.0f} times less with {USERS} users."
        ),
        verdict=verdict(False, costs[USERS] < costs[1] / 2),
        condition="so many users are there at once, and their KV caches fit.",
        setting=StageSetting(b.spec.name, b.hardware.name, "bf16", prompt_tokens=context, batch=USERS),
    )


def price_of_a_million_tokens(price_per_hour: float, tokens_per_s: float) -> float:
    """What a million tokens cost on a machine of an hourly price, in its currency."""
    return price_per_hour / SECONDS_PER_HOUR / tokens_per_s * MILLION
