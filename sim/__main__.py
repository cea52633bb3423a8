"""``python -m sim``: predict a run, write it as a simulated trace, score predictions, or fit the constants anew.

Answers begin with the verdict. Whatever is wrong with an argument is one sentence on stderr and exit status 2. This
file is wiring: the arithmetic is in its neighbours, and the trace is the one that the page plays.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sim.accuracy import accuracy_tables
from sim.calibrate import calibrate, load_observations, load_speedups
from sim.catalog_file import OwnCatalog, read_catalog
from sim.efficiency import EFFICIENCY, calibration, to_text
from sim.engines import find_engine
from sim.formats import find_kv_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.scenario import Scenario, usual_setting
from sim.score import score_file, table
from sim.words import prediction_text
from sources.simulated import make_trace
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


def _scenario(options: argparse.Namespace) -> Scenario:
    own = read_catalog(options.catalog) if options.catalog else OwnCatalog()
    find_kv_format(options.kv)
    spec = find_model(options.model, own.models)
    setting = usual_setting(find_hardware(options.hardware, own.devices), options.weights, options.tensor_parallel)
    if options.engine:  # a benchmark's row says when attention was fused; today it is
        engine = replace(find_engine(options.engine, setting.hardware), fused_attention=True)
        setting = replace(setting, engine=engine)
    return Scenario(spec, setting, options.kv, options.prompt_tokens, options.new_tokens, options.batch)


def _predict(options: argparse.Namespace) -> int:
    scenario = _scenario(options)
    found = scenario.predict()
    if options.json:
        print(json.dumps(found.to_json(), allow_nan=False))
    else:
        s = scenario
        print(prediction_text(s.spec, s.setting, s.prompt_tokens, s.new_tokens, s.batch, found))
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
    lines = make_trace(_scenario(options), uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"))
    n_events = -1
    with TraceWriter(options.out) as writer:
        for line in lines:
            writer.write_line(line)
            n_events += 1
    print(f"{n_events:,} events written to {options.out}")
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error.args[0]) if error.args else str(error)


if __name__ == "__main__":
    sys.exit(main())
