"""What one unit of each mechanism takes on a device under an engine: the half of a time that is calibrated.

A unit takes what the data sheet says, times a rate: the share of the bandwidth that kernels reach, the plain-unit
operations to unpack a weight, the seconds to launch a layer. Each rate is a base times factors by engine family, API,
device class, format or kernel path. ``calibrate.py`` fits all of them at once and pulls every factor towards 1 (a base
towards the prior stated here), the more the fewer measurements speak for it: so a family seen once barely moves
anything, and a device or an engine never seen gets what its class, API and format say. No constant belongs to a device.

    bandwidth    share of the published bandwidth at which weights stream
    unpack       plain-unit operations a weight: loading, dequantising, multiplying and adding it in a one-row product
    launch       seconds a layer for starting kernels, and for their ramp up and down
    cache        share of the bandwidth at which the KV cache is read
    compute      share of the published rate in large products; lower where little power feeds much arithmetic
    epilogue     fp32 operations for each int8 FLOP: llama.cpp scales every block's sum back to floating point
    attention    share of the 16-bit rate in scores and values
    scores       bytes moved for each score where attention is not fused (written, normalised, read: 4 bytes each time)
    experts      what grouped products of a mixture of experts take beyond their padded FLOPs
    step         seconds a pass for scheduling, sampling and the way between host and device
    all_reduce, handover   seconds each
    serial       share of a pipelined prefill that does not overlap over the devices of a layer split
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.allreduce import bus_bytes_per_s
from sim.engines import (
    Setting,
    bandwidth_bytes_per_s,
    compute_path,
    device_class,
    dies,
    format_group,
    shader_flops_per_s,
)
from sim.work import MECHANISMS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rate:
    """A base value and what may change it. ``spread`` and ``by`` are prior standard deviations of logarithms."""

    prior: float
    spread: float
    by: Mapping[str, float]


RATES: dict[str, Rate] = {
    "bandwidth": Rate(0.87, 0.05, {"engine": 0.1, "api": 0.05, "class": 0.1}),
    "unpack": Rate(6.0, 0.3, {"format": 0.4, "engine": 0.3, "engine on class": 0.5, "api": 0.3}),
    "launch": Rate(30e-6, 0.4, {"engine": 0.3, "api": 0.5, "build": 0.5, "class": 0.4}),
    "cache": Rate(0.7, 0.3, {"engine": 0.3, "api": 0.3, "build": 0.5, "class": 0.3}),
    "compute": Rate(0.7, 0.2, {"path": 0.5, "engine on class": 0.3, "engine": 0.2, "format": 0.3, "power": 0.3}),
    "epilogue": Rate(0.2, 0.5, {"format": 0.3}),
    "attention": Rate(0.4, 0.5, {"scores": 0.5, "class": 0.3, "api": 0.3}),
    "scores": Rate(8.0, 0.7, {"api": 0.4}),
    "experts": Rate(1.0, 0.1, {}),
    "step": Rate(100e-6, 0.5, {"engine": 1.0}),
    "all_reduce": Rate(15e-6, 0.4, {}),  # small messages in allreduce.csv take 7 us at best, 38 us in the middle
    "handover": Rate(1e-4, 1.0, {}),
    "serial": Rate(0.4, 0.5, {}),
}
# Factors that are expected to differ from 1 before any measurement, with the mechanism.
PRIOR_FACTORS: dict[str, float] = {
    "unpack, format llama.cpp 16 bit": 3.0,  # its one-row kernel keeps few loads in flight
    "unpack, format torch 16 bit": 1 / 3,  # nothing to unpack: load, multiply, add
    "unpack, format torch fp8": 1 / 3,  # converted by one instruction for several weights
    "unpack, format torch 8 bit": 2 / 3,
    "unpack, engine on class llama.cpp on cpu": 1 / 3,  # int8 dot products: four multiply-adds a lane
    "launch, engine compiled": 0.5,  # a few fused kernels a layer, one graph a step
    "launch, engine server": 0.5,
    "launch, engine eager": 20.0,  # a dozen kernels a layer, each started from Python
}
# Which rate a mechanism takes, and whether it is a share of something (time falls as it grows) or a cost.
RATE_OF: dict[str, tuple[str, int] | None] = {
    "weights": ("bandwidth", -1),
    "unpack": ("unpack", 1),
    "products": ("compute", -1),
    "experts": ("compute", -1),  # and "experts", see EXTRA_RATE
    "epilogue": ("epilogue", 1),
    "cache": ("cache", -1),
    "attention": ("attention", -1),
    "scores": ("scores", 1),
    "launches": ("launch", 1),
    "steps": ("step", 1),
    "all_reduce": ("all_reduce", 1),
    "wire": None,
    "handover": ("handover", 1),
}
EXTRA_RATE = {"experts": ("experts", 1)}
USUAL_WATTS_PER_TFLOP = 7.0  # fp32; RTX 3090 9.8, RTX 4090 5.4, L40S 3.8: below, clocks fall under load


def labels(setting: Setting) -> dict[str, tuple[str, float]]:
    """What a setting is filed by: for each kind of factor its label and its weight (1, but for power a logarithm)."""
    engine, device = setting.engine, setting.hardware
    family, kind = engine.family, device_class(device)
    found: dict[str, tuple[str, float]] = {
        "engine": (family, 1.0),
        "class": (kind, 1.0),
        "engine on class": (f"{family} on {kind}", 1.0),
        "format": (format_group(setting), 1.0),
        "path": (compute_path(setting).name, 1.0),
        "scores": ("fused" if engine.fused_attention else "unfused", 1.0),
        "power": ("power", _power_shortage(setting)),
    }
    if family == "llama.cpp":
        found["api"] = (engine.backend, 1.0)
        if not engine.graphs:
            found["build"] = ("before graphs", 1.0)
    return found


def factors(setting: Setting, rate: str) -> list[tuple[str, float]]:
    """The names and weights of the constants whose logarithms add up to a rate's: the base first."""
    filed = labels(setting)
    found = [(rate, 1.0)]
    for kind in RATES[rate].by:
        if kind in filed and filed[kind][1]:
            label, weight = filed[kind]
            found.append((f"{rate}, {kind} {label}", weight))
    return found


def rates_of(mechanism: str) -> list[tuple[str, int]]:
    """The rates that a mechanism's time is proportional to, each with its sign."""
    return [r for r in (RATE_OF[mechanism], EXTRA_RATE.get(mechanism)) if r]


def unit_seconds(setting: Setting) -> FloatArray:
    """(mechanisms,) seconds a unit at a rate of 1: what the published figures alone say. Raises ValueError."""
    device, engine = setting.hardware, setting.engine
    memory = 1 / bandwidth_bytes_per_s(device)
    plain, product = 1 / shader_flops_per_s(device), 1 / compute_path(setting).flops_per_s
    int8 = compute_path(setting).name == "int8"
    half = device.fp16_flops / dies(device) if device.fp16_flops else 1 / plain
    seconds = {
        "weights": memory,
        "unpack": plain,
        "products": product,
        "experts": product,
        "epilogue": plain if int8 else 0.0,
        "cache": memory,
        "attention": 1 / half,
        "scores": 0.0 if engine.fused_attention else memory,
        "launches": 1.0,
        "steps": 1.0,
        "all_reduce": 1.0,
        "wire": 1 / bus_bytes_per_s(device),
        "handover": 1.0,
    }
    return np.array([seconds[name] for name in MECHANISMS])


def _power_shortage(setting: Setting) -> float:
    """Logarithm of watts a TFLOP over the usual, where it is less; 0 where there is enough or nothing is known."""
    watts, flops = setting.hardware.tdp_w, setting.hardware.fp32_flops
    if not watts or not flops or setting.hardware.kind == "cpu":
        return 0.0
    return min(0.0, math.log(watts / (flops / 1e12) / USUAL_WATTS_PER_TFLOP))
