"""One run of a random model through the runner that every run takes: a trace, its figures, and logits to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch import Tensor

from engine.backend import Backend
from engine.header import Setting, make_header
from engine.machine import Machine
from engine.runner import Prompt, Runner, warm_up
from engine.sampling import Sampler as TokenSampler
from engine.timing import timer_for
from telemetry.events import End, Peak
from telemetry.protocol import RunRequest
from telemetry.recorder import Recorder
from telemetry.sampler import Sampler
from telemetry.sensors import open_sensors
from telemetry.summary import summarise
from telemetry.trace import TraceWriter, read_trace

COMPARED_STEPS = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """Figures of one run, None where unknown, and the logits (steps, V) of a fixed token sequence."""

    prefill_tok_s: float | None
    decode_tok_s: float | None
    prefill_share: float | None
    decode_share: float | None
    residual_s: float | None
    logits: Tensor


class NoText:
    """Random tokens say nothing."""

    def feed(self, token_id: int) -> str:
        return ""


def run_trial(
    backend: Backend, machine: Machine, peaks: tuple[Peak, ...], path: Path, *, tiny: bool, cuda_graph: bool
) -> Trial:
    """Warm up, run once into ``path``, then feed a fixed sequence for its logits."""
    n_prompt, n_new = (16, 8) if tiny else (512, 128)
    ids = torch.randint(backend.spec.vocab, (n_prompt,), generator=torch.Generator().manual_seed(2)).tolist()
    warm_up(backend)
    _record(backend, machine, peaks, path, ids, n_new, cuda_graph)
    trace = read_trace(path)
    summary = summarise(trace)
    return Trial(
        summary.prefill_tok_s,
        summary.decode_tok_s,
        summary.mfu.prefill,
        summary.mbu.decode,
        trace.header.clock.get("residual_s"),
        _fixed_logits(backend, ids),
    )


def differences(one: Trial, other: Trial) -> tuple[float, float]:
    """The greatest absolute difference of a logit, and the share of steps in which both would choose the same."""
    worst = (one.logits - other.logits).abs().max()
    same = (one.logits.argmax(-1) == other.logits.argmax(-1)).float().mean()
    return float(worst), float(same)


def _record(
    backend: Backend,
    machine: Machine,
    peaks: tuple[Peak, ...],
    path: Path,
    ids: Sequence[int],
    n_new: int,
    cuda_graph: bool,
) -> None:
    request = RunRequest(prompt_tokens=len(ids), max_new_tokens=n_new, ignore_eos=True, text_withheld=True)
    spec, timer = backend.spec, timer_for(machine.device)
    sensors, described = open_sensors(machine.device.type, machine.uuid, 0)
    setting = Setting(machine, peaks, spec.name, None, spec, backend, cuda_graph, None, None, cold=False)
    header = make_header(path.stem, request, setting, described, timer.clock(), datetime.now(UTC))
    with TraceWriter(path) as writer:
        recorder = Recorder(header, writer.write_line)
        sampler = Sampler(sensors, recorder.emit, recorder.now)
        prompt = Prompt(tuple(ids), ())
        runner = Runner(backend, recorder, timer, request, prompt, NoText(), frozenset(), TokenSampler())
        runner.announce()
        sampler.start()
        try:
            reason = runner.run()
        finally:
            sampler.stop()
        recorder.emit(End(None, reason, totals=runner.totals()))
    for sensor in sensors:
        sensor.close()


def _fixed_logits(backend: Backend, ids: Sequence[int]) -> Tensor:
    """The prompt's last logits and those of a few tokens after it, the same whatever the model would have chosen."""
    backend.reset()
    size, logits = backend.prefill_chunk, torch.empty(0)
    for position in range(0, len(ids), size):
        logits = backend.prefill(torch.tensor(ids[position : position + size]), position)
    found = [logits.float().cpu().clone()]
    for step in range(COMPARED_STEPS):
        found.append(backend.decode(ids[step], len(ids) + step).float().cpu().clone())
    return torch.stack(found)
