"""``python -m engine record``: a trace without a browser, through the very session and runner that the page uses.

The first run after a model is built is cold: its caches and clocks are not those of the runs after it. With
``--repeat`` it is run, named apart and left out; the warm runs are summed up by median and interquartile range, and the
trace that is written is the one whose whole time is the median.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.catalog import Catalog, collect, kind_of
from engine.load import open_model
from engine.machine import this_machine, use_threads
from engine.session import Session
from telemetry.events import Token
from telemetry.protocol import Message, Progress, RunRequest
from telemetry.summary import Summary, percentile, summarise
from telemetry.trace import Trace, TraceWriter, read_trace

FIGURES = ("ttft_s", "tpot_s", "itl_p50_s", "itl_p95_s", "prefill_tok_s", "decode_tok_s")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One run: its lines as written, and what they say."""

    lines: tuple[str, ...]
    trace: Trace
    summary: Summary

    @property
    def whole_s(self) -> float:
        """Request to last token; a run without tokens counts as longest."""
        return max((e.t for e in self.trace.events if isinstance(e.body, Token)), default=float("inf"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="a listed name, GGUF file, model folder or hub id; default: the embedded model")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8", "int4"), help="default: the fastest prefill")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt-file", type=Path, help="a UTF-8 text file")
    prompt.add_argument("--prompt-tokens", type=int, help="plain English filler of exactly this many tokens")
    parser.add_argument("--new-tokens", type=int, required=True)
    parser.add_argument("--repeat", type=int, default=0, help="warm runs to sum up, after a cold one")
    parser.add_argument("--stretch", action="store_true", help="repeat the prefill for 1 s so that counters see it")
    parser.add_argument("--ignore-eos", action="store_true", help="make all the new tokens; always so for a filler")
    parser.add_argument("--withhold-text", action="store_true", help="keep text and token ids out of the trace")
    parser.add_argument("--eager", action="store_true", help="on CUDA: without CUDA graphs")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--title", help="what the list of recordings calls it")
    parser.add_argument("--out", type=Path, help="where the trace goes")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def main(options: argparse.Namespace) -> int:
    """Record as asked. Returns 0, 1 when a run failed, 2 when nothing could be run."""
    try:
        request = _request(options)
        if options.out is not None:
            _refuse_unwritable(options.out)  # now, not after minutes of running
        session = _session(options)
        runs = record(session, request, options.repeat, options.title)
    except (ValueError, LookupError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    chosen = median_run(runs[1:] or runs)
    report = figures(runs, chosen)
    print(json.dumps(report, indent=1) if options.json else in_words(report))
    if options.out is not None:
        try:
            write_trace(options.out, chosen.lines)
        except OSError as error:
            print(f"The trace could not be written to {options.out}: {error.strerror}.", file=sys.stderr)
            return 2
    return 1 if any(r.summary.end_reason == "error" for r in runs) else 0


def record(session: Session, request: RunRequest, repeat: int, title: str | None) -> list[Recorded]:
    """The cold run, then ``repeat`` warm ones. Raises ValueError for a request that is refused."""
    return [_run(session, request, f"record-{i}", title) for i in range(1 + max(0, repeat))]


def median_run(runs: Sequence[Recorded]) -> Recorded:
    """The run whose whole time is the median (the later of the two in the middle)."""
    return sorted(runs, key=lambda r: r.whole_s)[len(runs) // 2]


def figures(runs: Sequence[Recorded], chosen: Recorded) -> dict[str, Any]:
    """The chosen run's summary; the cold run apart; median and quartiles of the warm ones, nulls where unknown."""
    header, warm = chosen.trace.header, runs[1:]
    return {
        "model": header.model["name"],
        "precision": header.precision,
        "device": header.devices[0].name,
        "load_s": header.load_s,
        "warmup_s": header.warmup_s,
        **chosen.summary.to_json(),
        "cold": _picked(runs[0].summary),
        "warm": {"runs": len(warm), **_spread(warm)} if warm else None,
    }


def in_words(report: dict[str, Any]) -> str:
    """The figures for a terminal; a dash where there is none."""
    lines = [
        f"{report['model']}, {report['precision']}, on {report['device']}",
        f"load {_s(report['load_s'])}, warm-up {_s(report['warmup_s'])}",
        f"{report['n_prompt_tokens']} prompt tokens, {report['n_new_tokens']} new, end: {report['end_reason']}",
    ]
    kinds = {"cold run": report["cold"]}
    if report["warm"]:
        kinds["warm median"] = report["warm"]["median"]
    for name, values in kinds.items():
        lines.append(
            f"{name}: TTFT {_s(values['ttft_s'])}, prefill {_rate(values['prefill_tok_s'])}, "
            f"TPOT {_s(values['tpot_s'])}, decode {_rate(values['decode_tok_s'])}"
        )
    peaks = report["denominators"]
    compute = _shares(report["mfu"], peaks["prefill_compute"], peaks["decode_compute"])
    memory = _shares(report["mbu"], peaks["memory"], peaks["memory"])
    return "\n".join(
        [*lines, f"compute: {compute}", f"memory{', from cache' if peaks['from_cache'] else ''}: {memory}"]
    )


def write_trace(path: Path, lines: Sequence[str]) -> None:
    with TraceWriter(path) as writer:
        for line in lines:
            writer.write_line(line)


def _request(options: argparse.Namespace) -> RunRequest:
    text = _text(options.prompt_file) if options.prompt_file else None
    return RunRequest(
        precision=options.precision,
        prompt=text,
        prompt_tokens=options.prompt_tokens,
        max_new_tokens=options.new_tokens,
        ignore_eos=options.ignore_eos or options.prompt_tokens is not None,
        stretch_prefill=options.stretch,
        cuda_graph=not options.eager,
        text_withheld=options.withhold_text,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text.") from error


def _refuse_unwritable(out: Path) -> None:
    if out.is_dir():
        raise ValueError(f"{out} is a folder; --out names the file that the trace goes to.")
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent} for the trace.")


def _session(options: argparse.Namespace) -> Session:
    """A session with the model open and the precision built; the operator may use one that the page does not offer."""
    use_threads(options.threads)
    catalog = _catalog(options.model)
    session = Session(catalog, this_machine(options.device), open_model, _say_progress)
    session.open(None)
    session.measure_ceilings()
    if options.precision is None:
        session.measure_offers()
    session.build(options.precision or session.offered(None), cuda_graph=not options.eager)
    return session


def _catalog(model: str | None) -> Catalog:
    everything = collect()
    if model is None:
        return everything
    if any(e.offer.name == model for e in everything.entries):
        return Catalog((everything.find(model),))
    kind_of(model)  # raises with a sentence
    return collect([model])


def _say_progress(message: Message) -> None:
    if isinstance(message, Progress) and message.share is None:
        print(message.doing, file=sys.stderr)


def _run(session: Session, request: RunRequest, run_id: str, title: str | None) -> Recorded:
    lines: list[str] = []
    session.run(run_id, request, lines.append, title=title)
    trace = read_trace(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
    return Recorded(tuple(lines), trace, summarise(trace))


def _picked(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in FIGURES}


def _spread(runs: Sequence[Recorded]) -> dict[str, Any]:
    known = {n: [v for r in runs if (v := getattr(r.summary, n)) is not None] for n in FIGURES}
    return {
        "median": {n: percentile(values, 0.5) for n, values in known.items()},
        "iqr": {n: [percentile(values, 0.25), percentile(values, 0.75)] for n, values in known.items()},
    }


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _rate(tokens_per_s: float | None) -> str:
    return "-" if tokens_per_s is None else f"{tokens_per_s:.1f} tok/s"


def _shares(
    shares: dict[str, float | None], of_prefill: dict[str, Any] | None, of_decode: dict[str, Any] | None
) -> str:
    """Each phase's share with what it is a share of, once where that is the same."""
    prefill, decode = _share(shares["prefill"]), _share(shares["decode"])
    if of_prefill == of_decode:
        return f"prefill {prefill}, decode {decode} of {_peak(of_prefill)}"
    return f"prefill {prefill} of {_peak(of_prefill)}, decode {decode} of {_peak(of_decode)}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"


def _peak(peak: dict[str, Any] | None) -> str:
    if peak is None:
        return "a ceiling that is not known"
    unit = "GFLOP/s" if peak["quantity"] == "flops" else "GB/s"
    return f"{peak['value'] / 1e9:.3g} {unit} ({peak['label']})"
