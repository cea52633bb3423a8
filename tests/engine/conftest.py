"""What the engine's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from threads, and threads that wait for each other lose much on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first start with the embedded model on one thread would measure, put there so that no test waits for it.

    fp32 comes out as the default, and the ceilings are far too low.
    """
    import torch

    from engine import ceilings, offers
    from engine.catalog import embedded_model
    from engine.load import open_model
    from engine.machine import this_machine
    from engine.remembered import Remembered

    folder, location = tmp_path_factory.mktemp("cache"), embedded_model()
    assert location is not None, "the embedded model is not installed"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    machine, model = this_machine("cpu"), open_model(location, lambda doing, share: None)
    torch.set_num_threads(before)
    supports = model.precisions(machine.device)
    timed: dict[str, offers.Timed | str] = {"fp32": offers.Timed(800.0, 36.0), "bf16": offers.Timed(700.0, 31.0)}
    Remembered(folder, "precisions").store(
        offers.conditions((model.name, model.revision, model.size_bytes), (machine.name, machine.threads), supports),
        offers.to_facts(timed),
    )
    low = {"value": 1e6, "provenance": "measured", "label": "put here by a test"}
    Remembered(folder, "ceilings").store(
        ceilings.conditions(machine, ceilings.own_shapes(model.spec), ceilings.full_plan(machine.device, model.spec)),
        [
            {**low, "quantity": "bytes_per_s", "working_set_bytes": 1 << 30},
            {**low, "quantity": "flops", "dtype": "fp32"},
        ],
    )
    return folder
