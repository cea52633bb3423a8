"""One setting of the simulator: which model on which device, in which formats, on how many tokens.

It is what a person chooses, already resolved to specs: the page, the command line and the simulated source hand it to
each other. It is hashable, so that the same choice need not be computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from sim.engines import Setting, usual_engine
from sim.formats import find_format, find_kv_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.predict import Prediction, predict
from sim.specs import HardwareSpec, ModelSpec

REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Scenario:
    """``kv``: the name of the KV cache's format. Counts are checked where they are used (``predict``)."""

    spec: ModelSpec
    setting: Setting
    kv: str
    prompt_tokens: int
    new_tokens: int
    batch: int = 1

    @property
    def kv_bytes_per_element(self) -> float:
        return find_kv_format(self.kv)

    def predict(self) -> Prediction:
        """Times, bytes and memory. Raises ValueError with one sentence as ``sim.predict.predict`` does."""
        return _predicted(self)


def usual_setting(hardware: HardwareSpec, weights: str, devices: int = 1) -> Setting:
    """The device with the engine that most people run there. Raises LookupError with the nearest weight formats."""
    form = find_format(weights)
    return Setting(hardware, usual_engine(hardware, form), form, tensor_parallel=devices)


def find_scenario(
    model: str,
    hardware: str,
    weights: str,
    prompt_tokens: int,
    new_tokens: int,
    batch: int = 1,
    kv: str = "fp16",
    devices: int = 1,
    own_models: Iterable[ModelSpec] = (),
    own_devices: Iterable[HardwareSpec] = (),
) -> Scenario:
    """A scenario by names. Raises LookupError with the nearest names for the first that is not known."""
    find_kv_format(kv)
    setting = usual_setting(find_hardware(hardware, own_devices), weights, devices)
    return Scenario(find_model(model, own_models), setting, kv, prompt_tokens, new_tokens, batch)


@lru_cache(maxsize=REMEMBERED)
def _predicted(scenario: Scenario) -> Prediction:
    return predict(
        scenario.spec,
        scenario.setting,
        scenario.prompt_tokens,
        scenario.new_tokens,
        scenario.batch,
        scenario.kv_bytes_per_element,
    )
