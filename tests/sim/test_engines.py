"""Names of engines and devices, turned into kernels and the units they run on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.engines import (
    Engine,
    Setting,
    bandwidth_bytes_per_s,
    compute_path,
    device_class,
    find_engine,
    format_group,
    shader_flops_per_s,
    usual_engine,
)
from sim.formats import find_format
from sim.hardware import find_hardware

RTX_4090 = find_hardware("RTX 4090")
H100 = find_hardware("h100-sxm")


@pytest.mark.parametrize(
    ("name", "hardware", "family", "backend"),
    [
        ("llama.cpp CUDA", "RTX 4090", "llama.cpp", "cuda"),
        ("llama.cpp Vulkan", "RTX 4070", "llama.cpp", "vulkan"),
        ("llama.cpp HIP", "RX 7900 XT", "llama.cpp", "rocm"),
        ("Ollama/llama.cpp", "Apple M4 Pro", "llama.cpp", "metal"),
        ("llama.cpp AMX", "Xeon Gold 6430", "llama.cpp", "cpu"),
        ("gpt-fast (torch.compile)", "A100 SXM4 80GB", "compiled", "cuda"),
        ("ExLlamaV2", "RTX 4090", "compiled", "cuda"),
        ("HF Transformers", "RTX 3090", "eager", "cuda"),
        ("vllm-mlx", "Apple M4 Max", "mlx", "metal"),
        ("MLX", "Apple M4 Max", "mlx", "metal"),
        ("an engine of next year", "RX 7900 XTX", "server", "rocm"),
    ],
)
def test_an_engine_is_known_by_its_kernels_and_an_unknown_one_is_a_server(
    name: str, hardware: str, family: str, backend: str
) -> None:
    engine = find_engine(name, find_hardware(hardware))
    assert (engine.family, engine.backend) == (family, backend)


def test_notes_of_a_benchmark_say_how_attention_and_launches_ran() -> None:
    old = find_engine("llama.cpp CUDA", RTX_4090, "llama-bench May 2024, FA off")
    new = find_engine("llama.cpp CUDA", RTX_4090, "backend CUDA; flash-attn on")
    assert (old.graphs, old.fused_attention) == (False, False)
    assert (new.graphs, new.fused_attention) == (True, True)
    assert find_engine("vLLM", H100).fused_attention


@pytest.mark.parametrize(
    ("hardware", "engine", "weights", "path", "flops"),
    [
        # llama.cpp multiplies quantised weights in int8: 660.8 TOPS (Ada whitepaper, appendix A).
        ("RTX 4090", "llama.cpp", "Q4_0", "int8", 660.8e12),
        # Its 16-bit products accumulate in 16 bit: 330.3 TFLOPS there, where FP32 accumulation has 165.2.
        ("RTX 4090", "llama.cpp", "fp16", "fp16 accumulate", 330.4e12),
        ("A100 SXM4 80GB", "llama.cpp", "fp16", "fp16 accumulate", 312e12),
        # Weight-only formats are unpacked first; fp8 has units of its own.
        ("H100 SXM5 80GB", "server", "int4-g128", "fp16", 989e12),
        ("H100 SXM5 80GB", "server", "fp8", "fp8", 1979e12),
        ("A100 SXM4 80GB", "server", "fp8", "fp16", 312e12),
        # No tensor cores, no half precision worth the name: dp4a.
        ("GTX 1080 Ti", "llama.cpp", "Q4_0", "int8", 45e12),
    ],
)
def test_the_peak_follows_the_kernel_path(hardware: str, engine: str, weights: str, path: str, flops: float) -> None:
    device = find_hardware(hardware)
    found = compute_path(Setting(device, find_engine(engine, device), find_format(weights)))
    assert found.name == path
    assert found.flops_per_s == pytest.approx(flops, rel=0.002)


def test_a_process_sees_one_die_of_a_board_of_two() -> None:
    board = find_hardware("Instinct MI250X")
    assert bandwidth_bytes_per_s(board) == board.bandwidth_bytes_per_s / 2  # type: ignore[operator]


def test_devices_are_classed_by_memory_and_units() -> None:
    classes = {
        "RTX 4090": "nvidia gddr",
        "A100 PCIe 80GB": "nvidia hbm",
        "B200 SXM": "nvidia hbm",
        "Tesla P40": "nvidia without tensor cores",
        "RX 7900 XTX": "amd gpu",
        "Apple M2 Ultra (76-core GPU)": "apple",
        "DGX Spark GB10": "apu",
        "TPU v5e": "tpu",
    }
    assert {name: device_class(find_hardware(name)) for name in classes} == classes


def test_formats_are_grouped_by_how_they_are_unpacked() -> None:
    llama, server = Engine("llama.cpp", "cuda"), Engine("server", "cuda")
    grouped = {
        (engine.family, name): format_group(Setting(RTX_4090, engine, find_format(name)))
        for engine, name in [(llama, "Q4_K_M"), (llama, "Q4_0"), (llama, "Q8_0"), (server, "bf16"), (server, "NVFP4")]
    }
    assert list(grouped.values()) == [
        "llama.cpp k blocks",
        "llama.cpp 4 bit",
        "llama.cpp 8 bit",
        "torch 16 bit",
        "torch 4 bit",
    ]


def test_without_being_told_weights_and_device_suggest_the_engine() -> None:
    assert usual_engine(RTX_4090, find_format("Q4_K_M")).family == "llama.cpp"
    assert usual_engine(H100, find_format("bf16")).family == "server"
    assert usual_engine(find_hardware("Apple M4 Max"), find_format("bf16")).backend == "metal"


def test_a_device_without_rates_is_refused_in_a_sentence() -> None:
    bare = replace(RTX_4090, fp32_flops=None, fp16_flops=None, bf16_flops=None, int8_ops=None, fp8_flops=None)
    bare = replace(bare, fp16_accumulate_flops=None, bandwidth_bytes_per_s=None)
    setting = Setting(bare, Engine("server", "cuda"), find_format("bf16"))
    for ask in (lambda: compute_path(setting), lambda: shader_flops_per_s(bare), lambda: bandwidth_bytes_per_s(bare)):
        with pytest.raises(ValueError, match=r"RTX 4090 is(?: not)? known; add"):
            ask()
