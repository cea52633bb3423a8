"""The engine between runs: the open model, the built precision, what the machine can do, and one run at a time.

The worker and ``python -m engine record`` both drive a session, so both make the same traces. One thread owns it. A
model is opened once and a precision built once for the same settings; whatever is to be replaced is let go first, so
that two never lie in memory together. A run that fails ends its trace with a sentence and leaves the session usable.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from engine import ceilings, offers
from engine.activity import Activity
from engine.backend import Backend
from engine.basis import basis_of
from engine.catalog import Catalog, Entry
from engine.failures import device_is_lost, sentence
from engine.header import Setting, make_header
from engine.machine import Machine
from engine.model import Model, Opener
from engine.prompts import check_request, compile_template, prepare
from engine.remembered import Remembered, cache_folder
from engine.runner import SEQ, Runner, warm_up
from engine.sampling import Sampler as TokenSampler
from engine.text import StreamDecoder
from engine.timing import timer_for
from sim.here import Basis
from telemetry.events import End, EndReason, Meta, Note, Peak
from telemetry.protocol import Message, PrecisionOffer, Progress, RunRequest, State, WorkerState
from telemetry.recorder import Recorder
from telemetry.sampler import Sampler
from telemetry.sensors import Sensor, open_sensors

DEFAULT_CONTEXT_TOKENS = 8192
PROGRESS_S = 0.2  # at most so often

Report = Callable[[Message], object]
OpenSensors = tuple[list[Sensor], list[dict[str, Any]]]  # with their entries in a header


@dataclass(frozen=True, slots=True)
class Built:
    """A backend with what it was built for and how long that took."""

    backend: Backend
    precision: str
    cuda_graph: bool
    build_s: float
    warmup_s: float


@dataclass(slots=True)
class Session:
    """``report`` gets progress and state; ``folder`` keeps what was measured; ``plan`` None is the full measurement."""

    catalog: Catalog
    machine: Machine
    opener: Opener
    report: Report = lambda _: None
    activity: Activity = field(default_factory=Activity)
    folder: Path = field(default_factory=cache_folder)
    plan: ceilings.Plan | None = None
    broken: bool = field(default=False, init=False)  # the device will not work again in this process
    _entry: Entry | None = field(default=None, init=False)
    _model: Model | None = field(default=None, init=False)
    _built: Built | None = field(default=None, init=False)
    _open_s: float = field(default=0.0, init=False)
    _peaks: tuple[Peak, ...] = field(default=(), init=False)
    _offers: tuple[PrecisionOffer, ...] = field(default=(), init=False)
    _default: str | None = field(default=None, init=False)
    _basis: Basis | None = field(default=None, init=False)
    _runs_since_build: int = field(default=0, init=False)
    _progress_told: float = field(default=0.0, init=False)
    _sensors: OpenSensors | None = field(default=None, init=False)

    @property
    def capacity_tokens(self) -> int:
        given = os.environ.get("SILICONSCOPE_CONTEXT", "")
        limit = int(given) if given.isdecimal() and int(given) > 0 else DEFAULT_CONTEXT_TOKENS
        return min(limit, self._ready_model().spec.max_context_tokens)

    def load(self, name: str | None = None, precision: str | None = None) -> None:
        """Open a model, find out what this machine can do with it (once), and build a precision. Ends in ``ready``.

        Raises LookupError or ValueError with a sentence for an unknown model or a precision that is not offered.
        """
        self.open(name)
        self.measure_ceilings()
        self.measure_offers()
        self.build(self.offered(precision))
        self.tell("ready")

    def open(self, name: str | None) -> None:
        """Open the model of that name unless it is open; the one before is let go first."""
        entry = self.catalog.find(name)
        if self._model is not None and self._entry == entry:
            return
        self.unload()
        self.tell("loading", entry.offer.name)
        self.activity.begin("loading")
        begun = time.perf_counter()
        self._model = self.opener(entry.location, self._progress)
        self._entry, self._open_s = entry, time.perf_counter() - begun

    def unload(self) -> None:
        """Let go of the model and everything built from it."""
        if self._model is None:
            return
        self._model.close()
        self._entry = self._model = self._built = self._basis = None
        self._offers, self._default = (), None
        self._free()

    def measure_ceilings(self) -> None:
        """The device's peaks: published ones, and ones measured here (from disk when known)."""
        spec = self._ready_model().spec
        plan = self.plan or ceilings.full_plan(self.machine.device, spec)
        self.activity.begin("measuring")

        def announce() -> None:
            self.tell("measuring")
            self._progress("Measuring what this machine can do at best", None)

        measured = ceilings.measured(self.machine, ceilings.own_shapes(spec), plan, self.folder, announce)
        self._peaks = (*ceilings.published(self.machine), *measured)

    def measure_offers(self) -> None:
        """Which precisions pay here; each is timed unless that was done before."""
        model, device = self._ready_model(), self.machine.device
        supports = model.precisions(device)
        remembered = Remembered(self.folder, "precisions")
        conditions = offers.conditions(
            (model.name, model.revision, model.size_bytes), (self.machine.name, self.machine.threads), supports
        )
        timed = offers.from_facts(remembered.load(conditions))
        if timed is None:
            self.tell("measuring")
            timed = offers.time_all(supports, self._build_to_time)
            remembered.store(conditions, offers.to_facts(timed))
        self._offers, self._default = offers.judge(supports, timed)

    def offered(self, precision: str | None) -> str:
        """The precision to use: the asked one if offered, else the default. Raises ValueError with a sentence."""
        if precision is None and self._default is not None:
            return self._default
        offer = next((o for o in self._offers if o.precision == precision), None)
        if offer is None:
            raise ValueError("No precision runs here." if precision is None else f"There is no precision {precision}.")
        if not offer.offered:
            raise ValueError(f"{offer.precision} is not offered here. {offer.reason or ''}".strip())
        return offer.precision

    def build(self, precision: str, *, cuda_graph: bool = True) -> Built:
        """Build and warm up a precision unless it stands. Raises ValueError, RuntimeError or MemoryError."""
        graph = cuda_graph and self.machine.device.type == "cuda"
        built = self._built
        if built is not None and (built.precision, built.cuda_graph) == (precision, graph):
            return built
        del built
        self._let_go()
        self.tell("loading")
        self.activity.begin("loading")
        backend, build_s = self._timed_build(precision, graph)
        self.activity.begin("warming up")
        self._progress("Warming up", None)
        begun = time.perf_counter()
        warm_up(backend)
        compile_template(self._ready_model())
        self._built = Built(backend, precision, graph, build_s, time.perf_counter() - begun)
        self._runs_since_build = 0
        self._opened_sensors()
        self._basis = basis_of(self._setting(self._built))
        self._predict(1, 1)  # reads the constants now, while no request waits
        return self._built

    def ready_for(self, request: RunRequest) -> None:
        """Load and build what the request wants, if it is not there yet. Raises like ``load``."""
        check_request(request)
        entry = self.catalog.find(request.model or (self._entry.offer.name if self._entry else None))
        if self._model is None or entry != self._entry:
            self.load(entry.offer.name, request.precision)
        self.build(self.offered(request.precision), cuda_graph=request.cuda_graph)

    def run(
        self,
        run_id: str,
        request: RunRequest,
        write_line: Callable[[str], None],
        cancelled: Callable[[], bool] = lambda: False,
        title: str | None = None,
    ) -> EndReason:
        """One run on what is built, as trace lines. The request arrives now: what is loaded by now is ready.

        Raises ValueError with a sentence for a request that is refused; no line has been written then.
        """
        prediction = self._predict(request.prompt_tokens, request.max_new_tokens)
        origin, arrived = time.perf_counter(), datetime.now(UTC)
        built, model = self._ready_built(), self._ready_model()
        prompt = prepare(model, request, built.backend.capacity_tokens)
        chooser = TokenSampler(request.temperature, request.top_p, request.seed)
        timer = timer_for(self.machine.device)
        sensors, described = self._opened_sensors()
        header = make_header(
            run_id, request, self._setting(built), described, timer.clock(), arrived, title, prediction
        )
        self.tell("running")
        recorder = Recorder(header, write_line, origin=origin)
        sampler = Sampler(sensors, recorder.emit, recorder.now)
        decoder = StreamDecoder(model.tokenizer, model.special_ids | model.eos_ids)
        runner = Runner(
            built.backend,
            recorder,
            timer,
            request,
            prompt,
            decoder,
            model.eos_ids,
            chooser,
            cancelled,
            self.activity,
        )
        return self._run_to_its_end(runner, recorder, sampler)

    def tell(self, state: WorkerState, model: str | None = None, message: str | None = None) -> None:
        """Report the state with all that is known by now."""
        entry, built = self._entry, self._built
        self.report(
            State(
                state,
                model or (entry.offer.name if entry else None),
                built.precision if built else None,
                self.machine.name,
                self._offers,
                self._default,
                self.capacity_tokens if self._model else None,
                self._open_s + built.build_s if built else None,
                message,
                self._basis.to_json() if self._basis else None,
                self.machine.device.type,
            )
        )

    def tell_settled(self, problem: str | None = None) -> None:
        """The state between commands, by what there is; ``problem`` is why there is nothing, if something was wrong."""
        if self._built:
            self.tell("ready")
        else:
            self.tell("failed" if problem else "idle", message=problem)

    def _run_to_its_end(self, runner: Runner, recorder: Recorder, sampler: Sampler) -> EndReason:
        self._runs_since_build += 1
        reason: EndReason = "error"
        message: str | None = None
        runner.announce()  # the request comes first, whatever the sampler has to say
        sampler.start()
        try:
            reason = runner.run()
        except Exception as error:  # the edge of a run: whatever broke, the trace ends with a sentence
            message = sentence(error)
            recorder.emit(End(SEQ, "error", message, runner.totals()))
            self._recover(error)
        finally:
            sampler.stop()
        if sampler.failure is not None:
            recorder.emit(Note(sampler.failure))
        self._add_what_is_known_late(runner, recorder)
        recorder.emit(End(None, reason, message, runner.totals()))
        return reason

    def _add_what_is_known_late(self, runner: Runner, recorder: Recorder) -> None:
        """A ceiling that the run itself passed; the prediction for a text, whose tokens are counted as it arrives."""
        fields: dict[str, Any] = {}
        before = recorder.header.ceilings
        after = ceilings.raised(before, runner.reached("prefill"), runner.reached("decode"))
        if after != before:
            fields["ceilings"] = asdict(after)
        if recorder.header.prediction is None and self._basis is not None:
            fields["prediction"] = self._predict(len(runner.prompt.ids), runner.request.max_new_tokens)
        if fields:
            recorder.emit(Meta(fields))

    def _predict(self, prompt_tokens: int | None, new_tokens: int) -> dict[str, Any] | None:
        """What the simulator expects of a run on what is built; None where a count or a ceiling is not known."""
        if self._basis is None or not prompt_tokens:
            return None
        return self._basis.predict(prompt_tokens, max(1, new_tokens)).to_json()

    def _recover(self, error: Exception) -> None:
        """After a failure: give memory back, so that the next run builds anew; a dead device needs a new process."""
        self.broken = device_is_lost(error)
        if not self.broken:
            self._let_go()

    def _setting(self, built: Built) -> Setting:
        model = self._ready_model()
        return Setting(
            self.machine,
            self._peaks,
            model.name,
            model.revision,
            model.spec,
            built.backend,
            built.cuda_graph,
            self._open_s + built.build_s,
            built.warmup_s,
            self._runs_since_build == 0,
        )

    def _opened_sensors(self) -> OpenSensors:
        """Opened once: probing them takes a moment that no run should wait for twice."""
        if self._sensors is None:
            self._sensors = open_sensors(self.machine.device.type, self.machine.uuid, 0)
        return self._sensors

    def _build_to_time(self, precision: str) -> Backend:
        self._let_go()
        self._progress(f"Timing {precision}", None)
        self.activity.begin("measuring")
        return self._timed_build(precision, self.machine.device.type == "cuda")[0]

    def _timed_build(self, precision: str, graph: bool) -> tuple[Backend, float]:
        begun = time.perf_counter()
        backend = self._ready_model().build(
            precision, self.machine.device, self.capacity_tokens, cuda_graph=graph, progress=self._progress
        )
        return backend, time.perf_counter() - begun

    def _ready_model(self) -> Model:
        if self._model is None:
            raise LookupError("No model is loaded.")
        return self._model

    def _ready_built(self) -> Built:
        if self._built is None:
            raise LookupError("No precision is built.")
        return self._built

    def _progress(self, doing: str, share: float | None = None) -> None:
        now = time.perf_counter()
        if share is None or now - self._progress_told > PROGRESS_S:
            self._progress_told = now
            self.report(Progress(doing, share))

    def _let_go(self) -> None:
        if self._built is not None:
            self._built = self._basis = None
            self._free()

    def _free(self) -> None:
        gc.collect()
        if self.machine.device.type == "cuda":
            torch.cuda.empty_cache()
