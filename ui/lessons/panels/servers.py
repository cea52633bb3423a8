"""How servers beat it: one pass for many users, and guesses that a pass checks at once; each also where it fails."""

from __future__ import annotations

import math

import streamlit as st

from sim.batching import batching_curve
from sim.engines import Setting
from sim.hardware import find_hardware
from sim.memory import kv_tokens_that_fit
from sim.models import find_model
from sim.scenario import usual_setting
from sim.speculation import draft_cost, speedup, verify_cost
from ui.lessons import charts, drawn
from ui.lessons.drawn import Mark
from ui.lessons.ground import Ground
from ui.lessons.numbers import percent, three, times
from ui.lessons.text import phrase

# One model and device for each technique; weights are the story's.
SERVED, SERVER, SERVED_WEIGHTS = "Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16"
TARGET, DRAFT, CHECKER, CHECKED_WEIGHTS = "Meta-Llama-3-70B", "Llama-3.2-1B", "H200 SXM", "int8"
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (128, 1024, 8192, 32768)
USERS, SHORT, LONG = 64, CONTEXTS[0], CONTEXTS[-1]
GUESSES, ACCEPTANCE, MANY_USERS = 5, 0.7, 64
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples spread most evenly over a circle
COMPARED_USERS = ((1, charts.WRITING), (MANY_USERS, charts.MUTED))
SHARES = tuple(n / 20 for n in range(2, 20))
# Passes of one user, and steps of the target, that the tracks show, and how long that takes to watch.
SHOWN_TOKENS, SHOWN_STEPS, SHOWN_S = 24, 14, 5.0


def figures(ground: Ground) -> dict[str, str]:
    """What each technique gains where it helps, and where it does not."""
    good, bad = _gain(USERS, SHORT), _gain(USERS, LONG)
    room = kv_tokens_that_fit(find_model(SERVED), _server().weights, 2.0, find_hardware(SERVER), USERS) or 0
    return {
        "served": SERVED,
        "server": SERVER,
        "users": f"{USERS}",
        "short": f"{SHORT:,}",
        "long": f"{LONG:,}",
        "gain": times(good),
        "long_gain": times(bad),
        "room": f"{room:,}",
        "target": TARGET,
        "draft": DRAFT,
        "guesses": f"{GUESSES}",
        "acceptance": percent(ACCEPTANCE),
        "faster": times(_speedup(ACCEPTANCE, GUESSES, 1)),
        "many_users": f"{MANY_USERS}",
        "slower": times(_speedup(ACCEPTANCE, GUESSES, MANY_USERS)),
    }


def panel(ground: Ground) -> None:
    """One technique at a time."""
    technique = st.segmented_control(
        phrase("servers.technique"),
        ("batching", "speculation"),
        default="batching",
        required=True,
        format_func=lambda name: phrase(f"servers.{name}"),
        key="servers_technique",
        label_visibility="collapsed",
    )
    (_speculation if technique == "speculation" else _batching)()


def _batching() -> None:
    left, right = st.columns(2)
    batch = left.select_slider(phrase("servers.users"), BATCHES, USERS, key="servers_batch")
    context = right.select_slider(
        phrase("servers.context"), CONTEXTS, SHORT, format_func=lambda n: f"{n:,}", key="servers_context"
    )
    curve = batching_curve(find_model(SERVED), _server(), BATCHES, context)
    here = BATCHES.index(batch)
    alone_s, together_s = float(curve.step_s[0]), float(curve.step_s[here])
    length = alone_s * SHOWN_TOKENS
    slowed = SHOWN_S / length
    tracks = _track(phrase("servers.one_user"), alone_s, 1, length, slowed)
    tracks += _track(phrase("servers.many_users", users=f"{batch}"), together_s, batch, length, slowed)
    said = {"gain": times(alone_s * batch / together_s), "slower": times(together_s / alone_s), "users": f"{batch}"}
    verdict = phrase("servers.no_room" if curve.fits[here] is False else "servers.gain", **said)
    st.html(drawn.again(hash((batch, context)), tracks + _below(verdict, phrase("panel.slowed", times=times(slowed)))))
    named = (
        (phrase("servers.all"), [float(x) for x in curve.total_tok_s], charts.WRITING),
        (phrase("servers.each"), [float(x) for x in curve.tok_s_each], charts.READING),
    )
    charts.show(charts.lines(BATCHES, named, phrase("servers.users"), "tok/s", batch), "servers_curve")


def _track(name: str, pass_s: float, tokens: int, length: float, slowed: float) -> str:
    ends = [pass_s * (i + 1) for i in range(int(length / pass_s + 1e-9))]
    count = phrase("servers.tokens", tokens=f"{len(ends) * tokens:,}")
    return drawn.track(name, [Mark(t, "write") for t in ends], length, slowed, count)


def _speculation() -> None:
    first = st.columns(3)
    acceptance = first[0].slider(phrase("servers.acceptance"), 0.1, 0.95, ACCEPTANCE, 0.05, key="servers_acceptance")
    guesses = first[1].slider(phrase("servers.guesses"), 1, 8, GUESSES, key="servers_guesses")
    users = first[2].select_slider(phrase("servers.users"), BATCHES[:-2], 1, key="servers_spec_users")
    cost, verify = _draft_cost(), _verify_cost(guesses, users)
    length = float(SHOWN_STEPS)
    slowed = SHOWN_S / length
    plain = [Mark(float(i + 1), "write") for i in range(SHOWN_STEPS)]
    rounds = _rounds(acceptance, guesses, cost, verify)
    kept = sum(mark.hue == "write" for mark in rounds)
    tracks = drawn.track(phrase("servers.plain"), plain, length, slowed, _tokens(len(plain)))
    tracks += drawn.track(phrase("servers.guessing"), rounds, length, slowed, _tokens(kept))
    gain = speedup(acceptance, guesses, cost, verify)
    said = {"gain": three(gain), "verify": three(verify), "draft": three(cost), "rows": f"{guesses + 1}"}
    verdict = phrase("servers.wins" if gain > 1 else "servers.loses", **said)
    st.html(drawn.again(hash((acceptance, guesses, users)), tracks + _below(verdict, phrase("servers.marks"))))
    named = [(phrase("servers.at_users", users=f"{n}"), _gains(guesses, n), c) for n, c in COMPARED_USERS]
    axes = phrase("servers.acceptance"), phrase("servers.gain_axis")
    charts.show(charts.gains(SHARES, named, *axes, acceptance), "servers_gain")


def _gains(guesses: int, users: int) -> list[float]:
    cost, verify = _draft_cost(), _verify_cost(guesses, users)
    return [speedup(share, guesses, cost, verify) for share in SHARES]


def _rounds(acceptance: float, guesses: int, cost: float, verify: float) -> list[Mark]:
    """Tokens on the clock, in steps of the target: kept ones, and guesses that were thrown away; a round's come all at
    its end. How many are right runs evenly through its distribution, so that few rounds show the mean and not luck."""
    marks: list[Mark] = []
    round_s = guesses * cost + verify
    for i in range(int(SHOWN_STEPS / round_s)):
        end, width = (i + 1) * round_s, round_s / (guesses + 1)
        quantile = (i + 0.5) * GOLDEN % 1
        accepted = min(guesses, int(math.log(quantile) / math.log(acceptance)))
        hues = ["write"] * (accepted + 1) + ["rejected"] * (guesses - accepted)
        marks += [Mark(end, hue, end - width * (guesses - k)) for k, hue in enumerate(hues)]
    return marks


def _tokens(n: int) -> str:
    return phrase("servers.tokens", tokens=f"{n:,}")


def _below(verdict: str, small: str) -> str:
    return f"<p><strong>{drawn.text(verdict)}</strong></p><p>{drawn.text(small)}</p>"


def _server() -> Setting:
    return usual_setting(find_hardware(SERVER), SERVED_WEIGHTS)


def _checker() -> Setting:
    return usual_setting(find_hardware(CHECKER), CHECKED_WEIGHTS)


def _gain(batch: int, context: int) -> float:
    curve = batching_curve(find_model(SERVED), _server(), (1, batch), context)
    return float(curve.total_tok_s[1] / curve.total_tok_s[0])


def _draft_cost() -> float:
    return draft_cost(find_model(DRAFT), find_model(TARGET), _checker(), CONTEXTS[1])


def _verify_cost(guesses: int, users: int) -> float:
    return verify_cost(find_model(TARGET), _checker(), guesses, CONTEXTS[1], users)


def _speedup(acceptance: float, guesses: int, users: int) -> float:
    return speedup(acceptance, guesses, _draft_cost(), _verify_cost(guesses, users))
