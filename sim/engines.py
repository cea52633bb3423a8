"""How an engine runs a model on a device: which kernels, on which arithmetic units, and how its constants are filed.

A time is set less by an engine's name than by a handful of mechanisms, so a name is turned into them: the family of its
kernels, the API it launches through, whether a whole step is one recorded graph, and whether attention is fused. An
engine that is not named here is taken as a server with fused kernels, the commonest kind; so is a new version.

The peak of a product follows the kernel, not the weights: llama.cpp's CUDA kernels multiply quantised weights by
activations quantised to int8, so their ceiling is the int8 rate; its 16-bit products accumulate in 16 bit, at twice
the rate on a GeForce card; weight-only formats elsewhere are unpacked first and multiplied in 16 bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from sim.formats import WeightFormat
from sim.specs import HardwareSpec

Family = Literal["llama.cpp", "compiled", "eager", "server", "mlx"]
Backend = Literal["cuda", "rocm", "vulkan", "metal", "sycl", "cpu", "xla"]

_BACKENDS: tuple[tuple[str, Backend], ...] = (
    ("cuda", "cuda"),
    ("metal", "metal"),
    ("vulkan", "vulkan"),
    ("rocm", "rocm"),
    ("hip", "rocm"),
    ("sycl", "sycl"),
    ("amx", "cpu"),
    ("cpu", "cpu"),
)
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"llama\.?cpp|ollama|llamafile|lm ?studio|koboldcpp|ik_llama", "llama.cpp"),
    (r"gpt-fast|torch\.compile|compiled|exllama|mlc|tinygrad", "compiled"),  # fused kernels, and no server's loop
    (r"transformers|eager|hugging", "eager"),
    (r"\bmlx", "mlx"),
)
# Boards on which one process sees one of several dies.
_DIES = {"Instinct MI250X": 2}
# NVIDIA's boards with stacked memory, by chip: the data sheets' rates do not tell a Titan V from an RTX 2080 Ti.
_NVIDIA_HBM = re.compile(r"\b(V100|Titan V|A30|[AHB][1-9]\d\d|GH200|GB[23]00)\b")
UNQUANTISED_FROM_BITS = 16


@dataclass(frozen=True, slots=True)
class Engine:
    """``graphs``: a step is launched as one recorded graph; without, kernel by kernel. ``fused_attention``: scores
    stay on the chip (flash attention)."""

    family: Family
    backend: Backend
    graphs: bool = True
    fused_attention: bool = True


@dataclass(frozen=True, slots=True)
class Setting:
    """What a step runs on. ``tensor_parallel`` devices share every layer; ``stages`` take turns, layer by layer."""

    hardware: HardwareSpec
    engine: Engine
    weights: WeightFormat
    tensor_parallel: int = 1
    stages: int = 1


@dataclass(frozen=True, slots=True)
class ComputePath:
    """The units that multiply in large products, and their dense rate in operations per second."""

    name: str  # int8 | fp16 | fp16 accumulate | bf16 | fp8 | fp4 | fp32 | shaders
    flops_per_s: float


def find_engine(name: str, hardware: HardwareSpec, notes: str = "") -> Engine:
    """The engine a name means ("llama.cpp CUDA", "vLLM 0.11", "gpt-fast (torch.compile)") on a device.

    ``notes``: what a measurement says of its set-up ("flash-attn on", "May 2024").
    """
    lower, remarks = name.lower(), notes.lower()
    family: Family = next((f for pattern, f in _FAMILIES if re.search(pattern, lower)), "server")
    backend = next((b for word, b in _BACKENDS if word in lower), _native_backend(hardware))
    engine = Engine(family, backend, graphs=family != "eager")
    if family != "llama.cpp":
        return engine
    fused = bool(re.search(r"\b(flash-attn|flash attention|fa) on\b|^fa$", remarks))
    before_graphs = bool(re.search(r"\b(2023|early 2024|may 2024)\b", remarks))  # CUDA graphs came in mid-2024
    return replace(engine, fused_attention=fused, graphs=not before_graphs)


def usual_engine(hardware: HardwareSpec, weights: WeightFormat) -> Engine:
    """What a person most likely runs: llama.cpp for its own formats, processors and Apple; else a fused server."""
    if weights.block is not None or weights.name == "MXFP4_MOE" or hardware.kind == "cpu" or hardware.vendor == "Apple":
        return Engine("llama.cpp", _native_backend(hardware))
    return Engine("server", _native_backend(hardware))


def device_class(hardware: HardwareSpec) -> str:
    """The kind of device that constants are pooled over: memory type and generation of the units, not the model.

    A card with much bandwidth for its arithmetic (HBM) behaves unlike one with little; cards before tensor cores
    unpack with slow integer units; chips that share a processor's memory and power budget are a class of their own.
    """
    if hardware.vendor == "Apple":
        return "apple"
    if hardware.kind in ("apu", "cpu", "tpu"):
        return hardware.kind
    if hardware.vendor != "NVIDIA":
        return f"{hardware.vendor.lower()} gpu"
    if not has_matrix_units(hardware):
        return "nvidia without tensor cores"
    return "nvidia hbm" if _NVIDIA_HBM.search(hardware.name) else "nvidia gddr"


def has_matrix_units(hardware: HardwareSpec) -> bool:
    """Whether 16-bit products run on more than the shaders: their rate is then over twice the fp32 rate."""
    fast, plain = hardware.fp16_flops, hardware.fp32_flops
    if hardware.year is not None and hardware.year < 2017:
        return False
    return bool(fast and plain and fast > 1.5 * plain)


def compute_path(setting: Setting) -> ComputePath:
    """The units and rate of large products, from the kernel that the engine picks for the format on this device.

    Raises ValueError where the catalog knows no arithmetic rate of the device at all.
    """
    device, engine = setting.hardware, setting.engine
    path = _llama_path(setting) if engine.family in ("llama.cpp", "mlx") else _server_path(setting)
    if path is None:
        raise ValueError(f"No arithmetic rate of {device.name} is known; add one to its row.")
    return ComputePath(path.name, path.flops_per_s / dies(device))


def shader_flops_per_s(hardware: HardwareSpec) -> float:
    """fp32 rate of the plain units, which unpack and scale; a sixteenth of the matrix rate where none is published."""
    rate = hardware.fp32_flops or (hardware.fp16_flops or 0.0) / 16
    if not rate:
        raise ValueError(f"No arithmetic rate of {hardware.name} is known; add one to its row.")
    return rate / dies(hardware)


def bandwidth_bytes_per_s(hardware: HardwareSpec) -> float:
    """Published memory bandwidth that one process sees. Raises ValueError where it is unknown."""
    if not hardware.bandwidth_bytes_per_s:
        raise ValueError(f"The memory bandwidth of {hardware.name} is not known; add it to its row.")
    return hardware.bandwidth_bytes_per_s / dies(hardware)


def dies(hardware: HardwareSpec) -> int:
    """Over how many processes' devices the board's rates are spread (MI250X: two dies)."""
    return _DIES.get(hardware.name, 1)


def format_group(setting: Setting) -> str:
    """The kind of unpacking that a format asks for: what its constants are filed by."""
    form = setting.weights
    kernels = "llama.cpp" if setting.engine.family == "llama.cpp" else "torch"
    if form.bits >= UNQUANTISED_FROM_BITS:
        return f"{kernels} 16 bit"
    if form.block is not None and form.block.endswith("_K"):
        return f"{kernels} k blocks"  # two levels of scales
    if form.bits >= 8:
        return f"{kernels} fp8" if form.arithmetic == "fp8" else f"{kernels} 8 bit"
    return f"{kernels} 4 bit"


def _llama_path(setting: Setting) -> ComputePath | None:
    device, backend = setting.hardware, setting.engine.backend
    half, plain = device.fp16_flops, device.fp32_flops
    if backend == "cuda":
        if setting.weights.arithmetic == "int8":
            return _first(("int8", device.int8_ops), ("fp16", half), ("fp32", plain))
        return _first(("fp16 accumulate", device.fp16_accumulate_flops), ("fp16 accumulate", half), ("fp32", plain))
    if backend == "metal":
        return _first(("shaders", max(half or 0.0, plain or 0.0)))
    if backend in ("vulkan", "sycl"):  # portable shaders do not reach all of the matrix units
        return _first(("portable", min(half or 2 * (plain or 0.0), 2 * (plain or 0.0)) or None))
    if backend == "rocm":
        return _first(("rocm", half or (2 * plain if plain else None)))
    return _first(("cpu", half), ("fp32", plain))


def _server_path(setting: Setting) -> ComputePath | None:
    device, arithmetic = setting.hardware, setting.weights.arithmetic
    half = device.bf16_flops or device.fp16_flops
    if arithmetic == "fp8":
        return _first(("fp8", device.fp8_flops), ("fp16", half), ("fp32", device.fp32_flops))
    if arithmetic == "fp4":
        return _first(("fp4", device.fp4_flops), ("fp8", device.fp8_flops), ("fp16", half), ("fp32", device.fp32_flops))
    if arithmetic == "int8":
        return _first(("w8a8", device.int8_ops), ("fp16", half), ("fp32", device.fp32_flops))
    if arithmetic == "fp32":
        return _first(("fp32", device.fp32_flops))
    return _first(("fp16", half), ("fp32", device.fp32_flops))


def _first(*candidates: tuple[str, float | None]) -> ComputePath | None:
    return next((ComputePath(name, rate) for name, rate in candidates if rate), None)


def _native_backend(hardware: HardwareSpec) -> Backend:
    if hardware.kind == "cpu":
        return "cpu"
    if hardware.kind == "tpu":
        return "xla"
    by_vendor: dict[str, Backend] = {"NVIDIA": "cuda", "AMD": "rocm", "Apple": "metal", "Intel": "sycl"}
    return by_vendor.get(hardware.vendor, "vulkan")
