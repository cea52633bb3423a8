"""Which device, how many threads, and what the system says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.host import cpu_last_level_cache_bytes, cpu_name, gpu_names, physical_cores
from engine.machine import choose_device, this_machine, use_threads

pytestmark = pytest.mark.engine


class Calls:
    """Stands for a torch.cuda that is not built in: any call but the check raises, as on a Mac."""

    def __init__(self, available: bool, count: int) -> None:
        self._available, self._count = available, count

    def is_available(self) -> bool:
        return self._available

    def device_count(self) -> int:
        assert self._available
        return self._count

    def __getattr__(self, name: str) -> object:
        raise AssertionError("Torch not compiled with CUDA enabled")


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [
        ((True, 1), True, "cuda"),
        ((True, 0), True, "mps"),
        ((False, 0), True, "mps"),
        ((False, 0), False, "cpu"),
    ],
)
def test_cuda_before_mps_before_cpu_and_no_cuda_call_unasked(
    monkeypatch: pytest.MonkeyPatch, cuda: tuple[bool, int], mps: bool, expected: str
) -> None:
    monkeypatch.setattr(torch, "cuda", Calls(*cuda))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device().type == expected
    assert choose_device("cpu").type == "cpu"
    if expected == "mps":
        machine = this_machine()
        assert machine.device.type == "mps" and machine.memory_bytes
        with pytest.raises(ValueError, match="no cuda device"):
            choose_device("cuda")


def test_this_computer_says_something_of_itself() -> None:
    machine = this_machine("cpu")
    assert machine.name == cpu_name() != ""
    assert machine.memory_bytes is not None and machine.memory_bytes > 1e9
    assert physical_cores() >= 1


def test_threads_come_from_the_option_then_the_environment_then_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    try:
        monkeypatch.setenv("SILICONSCOPE_THREADS", "1")
        assert (use_threads(2), use_threads()) == (2, 1)
        for nonsense in ("", "0", "-3", "many"):
            monkeypatch.setenv("SILICONSCOPE_THREADS", nonsense)
            assert use_threads() == physical_cores()
    finally:
        torch.set_num_threads(before)


def test_the_last_level_cache_is_read_where_linux_says_it(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([("1", "48K"), ("2", "1024K"), ("3", "32768K"), ("x", "9K")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(level)
        (folder / "size").write_text(size + "\n")
    assert cpu_last_level_cache_bytes(tmp_path) == 32 << 20
    assert cpu_last_level_cache_bytes(tmp_path / "not linux") is None


def test_gpus_are_listed_from_the_drivers_files(tmp_path: Path) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    (tmp_path / "0000:02:00.0").mkdir()
    assert gpu_names(tmp_path) == ("NVIDIA H200",)
    assert gpu_names(tmp_path / "none") == ()
