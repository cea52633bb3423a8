"""The engine between runs: loading once, letting go before the next, failing in a sentence and going on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import ceilings
from engine.catalog import Catalog, collect
from engine.remembered import Remembered
from engine.session import Session
from sim.here import Basis
from telemetry.events import KINDS
from telemetry.protocol import Message, RunRequest, State
from tests.engine.fakes import MACHINE, QUICK, SPEC, ScriptedBackend, ScriptedModel, gguf_at

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("one_thread")]
HELLO = RunRequest(prompt="Hi", max_new_tokens=5)


class Desk:
    """A session over scripted models, with everything it says and how often it opened what."""

    def __init__(self, tmp_path: Path, cache: Path, **models: Callable[[], ScriptedModel]) -> None:
        self.opened: list[str] = []
        self.alive: list[ScriptedModel] = []
        self.said: list[Message] = []
        self.models = models or {"toy": ScriptedModel}
        self.session = Session(self._catalog(tmp_path), MACHINE, self._open, self.said.append, folder=cache, plan=QUICK)

    def _catalog(self, tmp_path: Path) -> Catalog:
        return collect([str(gguf_at(tmp_path / f"{name}.gguf")) for name in self.models], environment={})

    def _open(self, location: str, progress: Any) -> ScriptedModel:
        assert all(m.closed for m in self.alive), "the model before was still held"
        self.opened.append(Path(location).stem)
        model = self.models[Path(location).stem]()
        self.alive.append(model)
        return model

    def run(self, request: RunRequest = HELLO, **options: Any) -> list[dict[str, Any]]:
        lines: list[str] = []
        self.session.ready_for(request)
        self.session.run("r1", request, lines.append, **options)
        return [json.loads(line) for line in lines]

    @property
    def backend(self) -> ScriptedBackend:
        """The one that stands built for the model opened last."""
        return self.alive[-1].alive[-1]

    @property
    def states(self) -> list[str]:
        return [m.state for m in self.said if isinstance(m, State)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measured by the first test that needs it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def desk(tmp_path: Path, measured: Path) -> Desk:
    return Desk(tmp_path, measured)


def text_of(lines: list[dict[str, Any]]) -> str:
    return "".join(e["text"] for e in lines if e.get("k") == "token")


def test_loading_measures_once_and_becomes_ready(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tmp_path)
    desk.session.load()
    assert desk.states[0] == "loading" and desk.states[-1] == "ready"
    assert "measuring" in desk.states
    ready = desk.said[-1]
    assert isinstance(ready, State)
    assert [(p.precision, p.offered) for p in ready.precisions][-1] == ("int4", False)
    assert ready.precisions[-1].reason == "There is no 4-bit product here."
    assert ready.default_precision == ready.precision
    again = Desk(tmp_path, tmp_path)
    again.session.load()
    assert "measuring" not in again.states


def test_a_model_is_opened_and_built_once_for_the_same_settings(desk: Desk) -> None:
    desk.session.load(precision="fp32")
    built = desk.alive[0].built
    before = len(built)
    for _ in range(5):
        desk.run(RunRequest(prompt="Hi", precision="fp32", temperature=1.0, max_new_tokens=2))
    assert (desk.opened, len(built)) == (["toy"], before)


def test_switching_models_lets_go_of_the_old_one_first(tmp_path: Path, measured: Path) -> None:
    desk = Desk(tmp_path, measured, one=ScriptedModel, two=ScriptedModel)
    desk.session.load("one")
    for name in ("two", "one", "one"):
        desk.run(RunRequest(model=name, prompt="Hi", max_new_tokens=2))
    assert desk.opened == ["one", "two", "one"]
    assert [m.closed for m in desk.alive] == [True, True, False]


def test_a_runs_header_holds_what_it_stood_on(desk: Desk) -> None:
    desk.session.load(precision="fp32")
    header = desk.run(title="A first look")[0]
    assert header["title"] == "A first look"
    assert header["model"]["spec"]["n_kv_heads"] == 2
    assert header["kv_capacity_tokens"] == 512
    assert header["ceilings"]["prefill_compute"]["label"].startswith("measured, fp32")
    assert header["devices"][0]["kind"] == "cpu"
    assert {s["metric"] for s in header["sensors"]} >= {"cpu_busy", "memory_used_bytes"}
    assert header["created"].endswith("+00:00")


def test_load_and_warm_up_stand_apart_and_only_the_first_run_is_cold(desk: Desk) -> None:
    desk.session.load(precision="fp32")
    first, second = desk.run(), desk.run()
    assert (first[0]["engine"]["cold"], second[0]["engine"]["cold"]) == (True, False)
    assert first[0]["load_s"] > 0 and first[0]["warmup_s"] > 0
    warm_up = desk.alive[0].alive[0].calls[:3]
    assert [c[0] for c in warm_up] == ["prefill", "decode", "decode"]
    assert first[1]["t"] == 0 and first[1]["k"] == "request"
    assert "cold" not in {k for line in first[1:] for k in line}


def test_what_a_run_reached_raises_a_ceiling_that_was_too_low(tmp_path: Path) -> None:
    low = {"value": 1.0, "provenance": "measured", "label": "put here by a test"}
    Remembered(tmp_path, "ceilings").store(
        ceilings.conditions(MACHINE, ceilings.own_shapes(SPEC), QUICK),
        [
            {**low, "quantity": "bytes_per_s", "working_set_bytes": 1 << 30},
            {**low, "quantity": "flops", "dtype": "fp32"},
        ],
    )
    desk = Desk(tmp_path, tmp_path)
    desk.session.load(precision="fp32")
    header, *events = desk.run()
    assert header["ceilings"]["memory"]["value"] == 1.0
    (raised,) = [e["fields"]["ceilings"] for e in events if e["k"] == "meta"]
    steps = [[s for s in events if s["k"] == "step" and s["rows"][0][3] == kind] for kind in ("prefill", "decode")]
    rates = [sum(sum(s["bytes"].values()) for s in of) / sum(s["t1"] - s["t0"] for s in of) for of in steps]
    assert raised["memory"]["value"] == pytest.approx(max(rates), rel=1e-2)
    assert {peak["label"] for name, peak in raised.items() if name != "from_cache"} == {"reached here by this run"}


@pytest.mark.parametrize("fails_after", [0, 5])
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("kernel failed\nat line 3"), "The run failed: kernel failed"),
        (MemoryError(), "The memory ran out"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 1 bytes"), "The memory ran out"),
        (torch.OutOfMemoryError("CUDA out of memory"), "The memory ran out"),
        (ValueError("This is refused."), "This is refused."),
    ],
)
def test_a_failing_run_ends_in_a_sentence_keeps_its_text_and_the_next_works(
    desk: Desk, fails_after: int, error: BaseException, says: str
) -> None:
    desk.session.load(precision="fp32")
    broken = desk.backend
    broken.break_after(fails_after, error)
    lines = desk.run(RunRequest(prompt="Hi", precision="fp32", max_new_tokens=50))
    assert text_of(lines) == "Hello"[:fails_after]
    ends = [e for e in lines if e.get("k") == "end"]
    assert [(e["seq"], e["reason"]) for e in ends] == [(0, "error"), (None, "error")]
    assert all(e["message"].startswith(says) and "\n" not in e["message"] for e in ends)
    assert lines[-1] == ends[-1]
    assert {e["k"] for e in lines[1:]} <= set(KINDS)
    assert not desk.session.broken
    assert text_of(desk.run()) == "Hello"
    assert desk.backend is not broken


def test_a_lost_device_is_said_to_be_lost(desk: Desk) -> None:
    desk.session.load(precision="fp32")
    error = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    desk.backend.break_after(1, error)
    assert desk.run(RunRequest(prompt="Hi", precision="fp32"))[-1]["reason"] == "error"
    assert desk.session.broken


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RunRequest(prompt="  "), "prompt is empty"),
        (RunRequest(prompt="Hi", model="another"), "no model of that name"),
        (RunRequest(prompt="Hi", precision="int4"), "int4 is not offered here. There is no 4-bit product here."),
        (RunRequest(prompt="Hi", precision="fp8"), "no precision fp8"),
        (RunRequest(prompt_tokens=600), "holds 512"),
        (RunRequest(prompt="Hi", temperature=-1), "temperature"),
    ],
)
def test_what_cannot_run_is_refused_and_writes_no_line(desk: Desk, request_: RunRequest, says: str) -> None:
    desk.session.load(precision="fp32")
    with pytest.raises((ValueError, LookupError), match=says):
        desk.run(request_)
    assert text_of(desk.run()) == "Hello"


@pytest.fixture
def measured_desk(tmp_path: Path) -> Desk:
    """On a machine whose ceilings are known, as they are after the full measurement."""
    known = {"value": 1e10, "provenance": "measured", "label": "put here by a test"}
    peaks = [
        {**known, "quantity": "bytes_per_s", "working_set_bytes": 1 << 30},
        {**known, "quantity": "flops", "dtype": "fp32"},
    ]
    Remembered(tmp_path, "ceilings").store(ceilings.conditions(MACHINE, ceilings.own_shapes(SPEC), QUICK), peaks)
    return Desk(tmp_path, tmp_path)


def test_a_prediction_stands_in_the_header_before_a_run_of_known_length(measured_desk: Desk) -> None:
    measured_desk.session.load(precision="fp32")
    header, *events = measured_desk.run(RunRequest(prompt_tokens=12, max_new_tokens=3))
    assert header["prediction"]["ttft_s"] > 0
    assert header["prediction"]["interval"]["tpot_s"][0] < header["prediction"]["tpot_s"]
    assert not [e for e in events if e["k"] == "meta" and "prediction" in e["fields"]]


def test_the_prediction_for_a_text_comes_when_its_tokens_are_counted(measured_desk: Desk) -> None:
    measured_desk.session.load(precision="fp32")
    header, *events = measured_desk.run(RunRequest(prompt="Hello", max_new_tokens=3))
    assert header["prediction"] is None
    (late,) = [e["fields"]["prediction"] for e in events if e["k"] == "meta" and "prediction" in e["fields"]]
    assert late["tpot_s"] > 0


def test_what_a_prediction_rests_on_is_told_while_a_precision_is_built(measured_desk: Desk) -> None:
    measured_desk.session.load(precision="fp32")
    ready = [m for m in measured_desk.said if isinstance(m, State) and m.state == "ready"][-1]
    assert ready.basis is not None
    assert Basis.from_json(ready.basis).predict(12, 3).ttft_s


def test_the_state_names_the_device_and_its_kind_apart(tmp_path: Path) -> None:
    """A card's name says nothing about its kind; the page offers CUDA's switch by the kind."""
    desk = Desk(tmp_path, tmp_path / "cache")
    desk.session.tell_settled()
    state = next(m for m in reversed(desk.said) if isinstance(m, State))
    assert (state.device, state.device_kind) == (MACHINE.name, MACHINE.device.type)
