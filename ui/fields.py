"""The simulator's fields, from text to a scenario: each is read by itself, and each that is wrong has one sentence.

Plain functions of text, so a link, a form and a test go the same way. Nothing is corrected silently: "0", "1.5", "nan"
or a name that is in no catalog is told at its field, and then there is no scenario.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sim.catalog_file import OwnCatalog
from sim.checks import MOST_SEQUENCES, MOST_TOKENS, check_count
from sim.engines import Setting, bandwidth_bytes_per_s, compute_path, usual_engine
from sim.formats import find_format, find_kv_format
from sim.hardware import find_hardware
from sim.ledger.claim import TOKENS_READ, TOKENS_WRITTEN
from sim.models import find_model
from sim.scenario import Scenario, usual_setting
from sim.specs import HardwareSpec
from sim.weights import weight_bytes

DEFAULTS = {
    "model": "Meta-Llama-3-8B",
    "device": "RTX 4090",
    "weights": "bf16",
    "kv": "fp16",
    "prompt": str(TOKENS_READ),
    "new": str(TOKENS_WRITTEN),
    "batch": "1",
    "gpus": "1",
    "against": "",
}
MOST_DEVICES = 64
RECORDING = "run:"  # begins the choice of a recording to stand beside

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resolved:
    """``scenario`` is None as soon as a field is wrong; ``problems`` has its sentence under the field's name."""

    scenario: Scenario | None
    problems: Mapping[str, str] = field(default_factory=dict)


def resolve(asked: Mapping[str, str], own: OwnCatalog) -> Resolved:
    """The scenario that the fields mean, or one sentence for each that means nothing. Nothing is corrected silently."""
    problems: dict[str, str] = {}

    def take(name: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(asked[name])
        except (ValueError, LookupError) as error:
            problems[name] = str(error.args[0])
            return None

    model = take("model", lambda text: find_model(text, own.models))
    device = take("device", lambda text: _with_rates(find_hardware(text, own.devices)))
    weights = take("weights", find_format)
    take("kv", find_kv_format)
    prompt = take("prompt", lambda text: count("The prompt", text))
    new = take("new", lambda text: count("The answer", text))
    batch = take("batch", lambda text: count("The batch", text, MOST_SEQUENCES))
    gpus = take("gpus", lambda text: count("The number of devices", text, MOST_DEVICES))
    if asked["against"] and not asked["against"].startswith(RECORDING):
        take("against", lambda text: _with_rates(find_hardware(text, own.devices)))
    if model and weights and gpus:
        take("gpus", lambda _: weight_bytes(model, weights, gpus))
    if problems or not (model and device and weights and prompt and new and batch and gpus):
        return Resolved(None, problems)
    scenario = Scenario(model, usual_setting(device, weights.name, gpus), asked["kv"], prompt, new, batch)
    take("prompt", lambda _: scenario.predict())
    return Resolved(None if problems else scenario, problems)


def count(what: str, text: str, most: int = MOST_TOKENS) -> int:
    """A whole number from text, thousands separated or not. Raises ValueError with one sentence."""
    plain = text.strip()
    if re.fullmatch(r"[-+]?\d{1,3}([, _]\d{3})+", plain):
        plain = re.sub(r"[, _]", "", plain)
    if re.fullmatch(r"[-+]?\d{1,18}", plain):
        return check_count(what, int(plain), most)
    try:
        number: object = float(plain)
    except ValueError:
        number = plain
    return check_count(what, number, most)


def against(scenario: Scenario, asked: str, own: OwnCatalog) -> Scenario:
    """The same on another device. Raises LookupError or ValueError with a sentence."""
    device = _with_rates(find_hardware(asked, own.devices))
    now = scenario.setting
    return replace(scenario, setting=usual_setting(device, now.weights.name, now.tensor_parallel))


def _with_rates(device: HardwareSpec) -> HardwareSpec:
    """The device, if the catalog knows enough of it to time anything. Raises ValueError with one sentence."""
    plain = find_format("bf16")
    setting = Setting(device, usual_engine(device, plain), plain)
    bandwidth_bytes_per_s(device)
    compute_path(setting)
    return device
