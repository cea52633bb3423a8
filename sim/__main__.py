"""``python -m sim``: predict a run, write it as a simulated trace, score predictions, or fit the constants anew.

Answers begin with the verdict. Whatever is wrong with an argument is one sentence on stderr and exit status 2. This
file is wiring: the arithmetic is in its neighbours, and only here does it meet the trace format.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from sim.accuracy import accuracy_tables
from sim.calibrate import calibrate, load_observations, load_speedups
from sim.catalog_file import OwnCatalog, read_catalog
from sim.costs import kv_bytes_per_token
from sim.efficiency import EFFICIENCY, calibration, to_text
from sim.engines import Setting, bandwidth_bytes_per_s, compute_path, find_engine, usual_engine
from sim.formats import find_format, find_kv_format
from sim.hardware import find_hardware
from sim.memory import kv_tokens_that_fit
from sim.models import find_model
from sim.playback import Pass, play
from sim.predict import Prediction, predict
from sim.score import score_file, table
from sim.specs import ModelSpec
from sim.words import prediction_text
from telemetry.events import (
    Body,
    Ceilings,
    Device,
    End,
    Event,
    Header,
    Peak,
    Phase,
    Request,
    Row,
    Step,
    StepBytes,
    Token,
    encode_event,
    encode_header,
)
from telemetry.trace import TraceWriter

WRONG = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of one command."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, LookupError, OSError) as error:
        print(_sentence(error), file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sim", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("predict", help="times, bytes, bound and memory of a run")
    _add_run(one)
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.set_defaults(run=_predict)
    played = commands.add_parser("trace", help="write the run as a simulated trace")
    _add_run(played)
    played.add_argument("--out", type=Path, required=True, help="the file to write, *.jsonl")
    played.set_defaults(run=_trace)
    scored = commands.add_parser("score", help="compare predictions with measurements")
    scored.add_argument("file", type=Path, help="a CSV file with the columns of assets/catalog/measured/*.csv")
    scored.add_argument("--json", action="store_true", help="print one JSON object")
    scored.set_defaults(run=_score)
    fitted = commands.add_parser("calibrate", help="fit the constants on assets/catalog/measured and store them")
    fitted.add_argument("--out", type=Path, default=EFFICIENCY, help="where to store them")
    fitted.set_defaults(run=_calibrate)
    told = commands.add_parser("accuracy", help="print the tables of docs/accuracy.md (takes a minute)")
    told.set_defaults(run=_accuracy)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help='a name from the catalog, such as "llama-3-70b"')
    parser.add_argument("--hardware", required=True, help='a name from the catalog, such as "h100-sxm"')
    parser.add_argument("--weights", default="bf16", help="weight format: bf16, int8, Q4_K_M, 2.5bpw, ...")
    parser.add_argument("--kv", default="fp16", help="format of the KV cache")
    parser.add_argument("--prompt-tokens", type=_whole, default=2667, metavar="N")
    parser.add_argument("--new-tokens", type=_whole, default=67, metavar="N")
    parser.add_argument("--batch", type=_whole, default=1, metavar="N", help="equal requests answered together")
    parser.add_argument("--tensor-parallel", type=_whole, default=1, metavar="N", help="devices that share each layer")
    parser.add_argument("--engine", help='such as "vLLM" or "llama.cpp CUDA"; by default what suits the weights')
    parser.add_argument("--catalog", type=Path, help="your own devices or models, or a config.json")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _run_of(options: argparse.Namespace) -> tuple[ModelSpec, Setting, float]:
    own = read_catalog(options.catalog) if options.catalog else OwnCatalog()
    spec = find_model(options.model, own.models)
    hardware = find_hardware(options.hardware, own.devices)
    form = find_format(options.weights)
    engine = usual_engine(hardware, form)
    if options.engine:  # a benchmark's row says when attention was fused; today it is
        engine = replace(find_engine(options.engine, hardware), fused_attention=True)
    setting = Setting(hardware, engine, form, tensor_parallel=options.tensor_parallel)
    return spec, setting, find_kv_format(options.kv)


def _predicted(options: argparse.Namespace) -> tuple[ModelSpec, Setting, float, Prediction]:
    spec, setting, kv_bytes = _run_of(options)
    found = predict(spec, setting, options.prompt_tokens, options.new_tokens, options.batch, kv_bytes)
    return spec, setting, kv_bytes, found


def _predict(options: argparse.Namespace) -> int:
    spec, setting, _, found = _predicted(options)
    if options.json:
        print(json.dumps(found.to_json(), allow_nan=False))
    else:
        print(prediction_text(spec, setting, options.prompt_tokens, options.new_tokens, options.batch, found))
    for warning in found.warnings:
        print(warning, file=sys.stderr)
    return 0


def _score(options: argparse.Namespace) -> int:
    found = score_file(options.file)
    print(json.dumps(found.to_json(), allow_nan=False) if options.json else table(found))
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    observations, speedups = load_observations(), load_speedups()
    print(f"Fitting {len(observations)} measurements and {len(speedups)} speed-ups, each device left out in turn ...")
    found = calibrate(observations, speedups)
    options.out.write_text(to_text(found), encoding="utf-8")
    for metric, by in found.residuals.items():
        r = by[""]
        print(f"{metric:<12} n {r.n:>4}   measured over predicted: {r.p10:.2f} {r.p50:.2f} {r.p90:.2f}")
    print(f"{len(found.values)} constants in {options.out}")
    return 0


def _accuracy(_: argparse.Namespace) -> int:
    print(accuracy_tables(load_observations(), load_speedups(), calibration()))
    return 0


def _trace(options: argparse.Namespace) -> int:
    spec, setting, kv_bytes, found = _predicted(options)
    if found.memory.fits is False:
        raise ValueError(found.memory.sentence())
    prompt, answer, batch = options.prompt_tokens, options.new_tokens, options.batch
    passes = play(spec, setting, prompt, answer, batch, kv_bytes)
    header = _header(spec, setting, kv_bytes, options, found)
    with TraceWriter(options.out) as writer:
        writer.write_line(encode_header(header))
        for n, (t, body) in enumerate(_bodies(passes, prompt, answer, batch)):
            writer.write_line(encode_event(Event(n, t, body)))
    print(f"{len(passes)} passes, {passes[-1].t1_s:.3f} s, written to {options.out}")
    return 0


def _header(
    spec: ModelSpec, setting: Setting, kv_bytes: float, options: argparse.Namespace, found: Prediction
) -> Header:
    device, path, ranks = setting.hardware, compute_path(setting), setting.tensor_parallel
    compute = Peak("flops", path.flops_per_s * ranks, "datasheet", f"{path.name}, published dense rate", path.name)
    bandwidth = bandwidth_bytes_per_s(device) * ranks
    memory = Peak("bytes_per_s", bandwidth, "datasheet", "published memory bandwidth")
    capacity = kv_tokens_that_fit(spec, setting.weights, kv_bytes, device, options.batch, ranks)
    one = Device(device.name, "simulated", None, device.memory_bytes, device.last_level_cache_bytes, (compute, memory))
    return Header(
        id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source="simulated",
        model={"name": spec.name, "revision": None, "spec": asdict(spec)},
        precision=setting.weights.name,
        devices=(one,) * ranks,
        ceilings=Ceilings(compute, compute, memory),
        tensor_parallel=ranks,
        engine={"name": f"{setting.engine.family} ({setting.engine.backend})", "version": None, "options": {}},
        kv_bytes_per_token=kv_bytes_per_token(spec, kv_bytes),
        kv_capacity_tokens=capacity,
        clock={"name": "simulated", "residual_s": 0.0},
        load_s=None,
        prediction=found.to_json(),
        text_withheld=True,
    )


def _bodies(passes: Iterable[Pass], prompt: int, answer: int, batch: int) -> Iterator[tuple[float, Body]]:
    """The events of a run in order, each with its time."""
    for seq in range(batch):
        yield 0.0, Request(seq, prompt, answer)
        yield 0.0, Phase(seq, "waiting")
    started: set[int] = set()
    last_s = 0.0
    for i, p in enumerate(passes):
        sequences = range(p.first, p.first + p.rows)
        for seq in sequences:
            if seq not in started:
                started.add(seq)
                yield p.t0_s, Phase(seq, "prefill")
        yield p.t1_s, _step(i, p)
        for seq in sequences if p.yields_token else ():
            position = prompt if p.kind == "prefill" else p.context + 1
            yield p.t1_s, Token(seq, i, position, "")
            if p.kind == "prefill" and answer > 1:
                yield p.t1_s, Phase(seq, "decode")
        last_s = p.t1_s
    for seq in range(batch):
        yield last_s, Phase(seq, "done")
        yield last_s, End(seq, "length", totals={"n_new_tokens": answer})
    yield last_s, End(None, "length", totals={"n_new_tokens": answer * batch})


def _step(i: int, p: Pass) -> Step:
    rows = tuple(Row(seq, p.n_tokens, p.context, p.kind) for seq in range(p.first, p.first + p.rows))
    c = p.cost
    moved = StepBytes(c.weights_bytes, c.kv_read_bytes, c.kv_write_bytes, c.activation_bytes)
    return Step(i, p.t0_s, p.t1_s, "target", rows, float(c.flops), moved, "device")


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}."
    return str(error.args[0]) if error.args else str(error)


if __name__ == "__main__":
    sys.exit(main())
