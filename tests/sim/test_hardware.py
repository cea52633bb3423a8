"""The catalog against its own known traps, and drivers' names against its rows."""

from __future__ import annotations

import csv

import pytest

from sim.hardware import CATALOG, GIB, all_hardware, find

MIB = 1 << 20


def rows() -> list[dict[str, str]]:
    with CATALOG.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_has_a_name_of_its_own_a_source_and_a_confidence() -> None:
    names = [spec.name for spec in all_hardware()]
    assert len(set(names)) == len(names) > 100
    assert all(spec.source and spec.confidence in {"high", "medium", "low"} for spec in all_hardware())


@pytest.mark.parametrize(
    ("name", "dense_tflops", "sparse_tflops"),
    [  # NVIDIA's datasheets print the second figure for Hopper, the first for Ampere
        ("NVIDIA A100-SXM4-80GB", 312, 624),
        ("NVIDIA H100 80GB HBM3", 989.5, 1979),
        ("NVIDIA H100 PCIe", 756.5, 1513),
        ("NVIDIA H100 NVL", 835.5, 1671),
        ("NVIDIA H200", 989.5, 1979),
        # The rate with FP32 accumulation is half of the FP16-accumulate rate that is often printed
        ("NVIDIA GeForce RTX 4090", 165.2, 330.4),
        ("NVIDIA GeForce RTX 3090", 71, 142),
    ],
)
def test_rates_are_dense_with_fp32_accumulation(name: str, dense_tflops: float, sparse_tflops: float) -> None:
    spec = find(name)
    assert spec is not None and spec.bf16_flops is not None
    assert spec.bf16_flops == pytest.approx(dense_tflops * 1e12, rel=1e-3)
    assert spec.bf16_flops < sparse_tflops * 1e12 * 0.6


def test_hopper_fp8_is_twice_16_bit_and_no_row_is_off_by_sparsity() -> None:
    for row in rows():
        if row["vendor"] == "NVIDIA" and row["fp8_dense_TFLOPS"] and row["fp16_dense_TFLOPS"]:
            ratio = float(row["fp8_dense_TFLOPS"]) / float(row["fp16_dense_TFLOPS"])
            assert ratio == pytest.approx(2, rel=0.02), row["name"]


def test_units() -> None:
    for spec in all_hardware():
        assert spec.bandwidth_bytes_per_s is not None and 1e10 < spec.bandwidth_bytes_per_s < 1e13, spec.name
        assert spec.bf16_flops is None or 1e12 < spec.bf16_flops < 3e15, spec.name
        assert spec.memory_bytes is None or spec.memory_bytes >= 8 * GIB, spec.name


@pytest.mark.parametrize("name", ["Tesla T4", "Tesla V100-SXM2-16GB", "NVIDIA GeForce RTX 2080 Ti"])
def test_a_chip_without_bf16_has_no_bf16_rate(name: str) -> None:
    spec = find(name)
    assert spec is not None and spec.bf16_flops is None


@pytest.mark.parametrize(
    ("name", "memory_mib", "row"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "H100 SXM5 80GB"),
        ("NVIDIA H100 PCIe", 81559, "H100 PCIe"),
        ("NVIDIA H100 NVL", 95830, "H100 NVL"),
        ("NVIDIA H200", 143771, "H200 SXM"),
        ("NVIDIA B200", 183359, "B200 SXM"),
        ("NVIDIA GH200 480GB", 97871, "GH200 96GB"),
        ("NVIDIA GB10", None, "DGX Spark GB10"),
        ("NVIDIA GeForce RTX 4090", 24564, "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", 24564, "RTX 4090 D"),
        ("NVIDIA GeForce RTX 3080", 10240, "RTX 3080 10GB"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "RTX 4070 Ti SUPER"),
        ("NVIDIA RTX A6000", 49140, "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", 49140, "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "RTX PRO 6000 Blackwell Workstation Edition"),
        ("Quadro RTX 6000", 24220, "Quadro RTX 6000"),
        ("NVIDIA L4", 23034, "L4"),
        ("Tesla T4", 15109, "Tesla T4"),
        ("NVIDIA A10G", 23028, "A10G"),
        ("NVIDIA A100-SXM4-80GB", 81920, "A100 SXM4 80GB"),
        ("NVIDIA A100 80GB PCIe", 81920, "A100 PCIe 80GB"),
        ("NVIDIA A100-PCIE-40GB", None, "A100 PCIe 40GB"),
        ("Tesla V100-SXM2-16GB", 16160, "Tesla V100 SXM2 16GB"),
        ("Tesla V100-SXM2-32GB", 32510, "Tesla V100 SXM2 32GB"),
        ("AMD Instinct MI300X", 196592, "Instinct MI300X"),
        ("AMD Radeon RX 7900 XTX", 24560, "RX 7900 XTX"),
        ("Intel(R) Arc(TM) B580 Graphics", 11605, "Arc B580"),
        ("AMD EPYC 9654 96-Core Processor", 773000, "EPYC 9654 (1 socket)"),
        ("Intel(R) Xeon(R) Platinum 8480+", None, "Xeon Platinum 8480+ (1 socket)"),
        ("13th Gen Intel(R) Core(TM) i9-13900K", 32000, "Core i9-13900K DDR5-6400"),
        ("AMD Ryzen 9 9950X 16-Core Processor", None, "Ryzen 9 9950X DDR5-5600"),
    ],
)
def test_drivers_names_are_found(name: str, memory_mib: int | None, row: str) -> None:
    spec = find(name, None if memory_mib is None else memory_mib * MIB)
    assert spec is not None
    assert spec.name == row


@pytest.mark.parametrize(
    ("name", "memory_mib"),
    [
        ("", None),
        ("AMD EPYC", None),
        ("NVIDIA", None),
        ("NVIDIA Graphics Device", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", 8192),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9984),  # a slice has a fraction of the rates
        ("NVIDIA H200 NVL", 143771),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887),
        ("NVIDIA A100-SXM4", None),  # 40 or 80 GB, with different bandwidth
        ("NVIDIA GeForce RTX 3060", None),  # 8 or 12 GB
        ("NVIDIA GeForce RTX 3060", 8192),
        ("NVIDIA GeForce RTX 3080", 12288),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA GH200 480GB", 146000),
        ("AMD Instinct MI250X", 65520),  # one of its two dies has half the rates
        ("Apple M1 Max", None),  # 24 or 32 cores
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", None),
    ],
)
def test_what_the_name_does_not_decide_is_not_guessed(name: str, memory_mib: int | None) -> None:
    assert find(name, None if memory_mib is None else memory_mib * MIB) is None


@pytest.mark.parametrize("spec", all_hardware(), ids=lambda spec: spec.name)
def test_every_row_is_found_by_its_own_name_or_not_at_all(spec: object) -> None:
    name, memory = spec.name, spec.memory_bytes  # type: ignore[attr-defined]
    assert find(name, memory) in (spec, None)
