"""``python -m telemetry``: check a trace file and sum it up, or watch this machine's sensors in a terminal.

``check`` exits with 0 when the file reads as a trace (what was damaged or missing is said on stderr), with 1 and one
sentence when it does not. ``watch`` prints each metric's newest value, its age and where it comes from, until Ctrl-C.
Neither needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from telemetry.events import Peak, Sample
from telemetry.sampler import Sampler
from telemetry.sensors import open_sensors
from telemetry.sensors.base import Unavailable
from telemetry.sensors.nvml import driver_facts, open_device, visible_uuids
from telemetry.summary import PhaseFigures, Summary, summarise
from telemetry.trace import Trace, TraceError, read_trace

_REFRESH_S = 1.0
_SCALES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_PERCENT, _PLAIN = "fraction", {"°C", "W", "J", "bits"}

Key = tuple[str, str, int | None]  # sensor, metric, device


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status of one command."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name with an emoji must not stop a terminal that cannot show it
    if options.command == "check":
        return _check(options.file, options.json)
    return _watch(options.seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m telemetry", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="read a trace file and print its summary")
    check.add_argument("file", type=Path)
    check.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    watch = commands.add_parser("watch", help="print the sensors of this machine")
    watch.add_argument("--seconds", type=float, default=None, help="stop after so many seconds")
    return parser


def _check(path: Path, as_json: bool) -> int:
    try:
        trace = read_trace(path)
    except TraceError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{path} cannot be opened: {error.strerror or error}.", file=sys.stderr)
        return 1
    summary = summarise(trace)
    for note in trace.notes:
        print(note, file=sys.stderr)
    print(json.dumps(summary.to_json(), allow_nan=False) if as_json else "\n".join(_summary_lines(trace, summary)))
    return 0


def _summary_lines(trace: Trace, summary: Summary) -> list[str]:
    header, ceilings = trace.header, summary.denominators
    run = (
        header.model.get("name") or "unknown model",
        header.precision,
        header.source,
        *(d.name for d in header.devices),
    )
    peaks = _denominators(ceilings.prefill_compute, ceilings.decode_compute)
    figures = {
        "run": ", ".join(run),
        "tokens": f"{_or_dash(summary.n_prompt_tokens)} prompt, {_or_dash(summary.n_new_tokens)} new",
        "TTFT": _milliseconds(summary.ttft_s),
        "TPOT": f"{_milliseconds(summary.tpot_s)} (gaps: median {_milliseconds(summary.itl_p50_s)}, "
        f"95 % under {_milliseconds(summary.itl_p95_s)})",
        "prefill": f"{_number(summary.prefill_tok_s)} tok/s",
        "decode": f"{_number(summary.decode_tok_s)} tok/s",
        "intensity": _phases(summary.intensity, _number, " FLOP/byte"),
        "bytes a token": _bytes_per_token(summary),
        "MFU": f"{_phases(summary.mfu, _percent)}; of {peaks}",
        "MBU": f"{_phases(summary.mbu, _percent)}; of {_denominator(ceilings.memory)}"
        + (" (from cache)" if ceilings.from_cache else ""),
        "energy": "-" if summary.energy_j is None else f"{summary.energy_j:.1f} J",
        "ended by": summary.end_reason or "-",
    }
    return [f"{name:<14} {value}" for name, value in figures.items()]


def _bytes_per_token(summary: Summary) -> str:
    parts = summary.bytes_per_token
    if parts is None:
        return "-"
    named = (
        ("weights", parts.weights),
        ("KV read", parts.kv_read),
        ("KV write", parts.kv_write),
        ("activations", parts.activations),
    )
    return ", ".join(f"{name} {_scaled(value, 'B')}" for name, value in named)


def _phases(figures: PhaseFigures, show: Any, unit: str = "") -> str:
    return f"prefill {show(figures.prefill)}{unit}, decode {show(figures.decode)}{unit}"


def _denominators(prefill: Peak | None, decode: Peak | None) -> str:
    return _denominator(prefill) if prefill == decode else f"{_denominator(prefill)} and {_denominator(decode)}"


def _denominator(peak: Peak | None) -> str:
    if peak is None:
        return "an unknown ceiling"
    return f"{_scaled(peak.value, 'FLOP/s' if peak.quantity == 'flops' else 'B/s')} ({peak.label})"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _milliseconds(value_s: float | None) -> str:
    return "-" if value_s is None else f"{value_s * 1e3:.4g} ms"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"


def _scaled(value: float, unit: str) -> str:
    prefix, scale = next(((p, s) for p, s in _SCALES if abs(value) >= s), ("", 1.0))
    return f"{value / scale:.3g} {prefix}{unit}"


def _watch(seconds: float | None) -> int:
    uuids = _announced_gpus()
    opened = [open_sensors("cuda", uuid, index) for index, uuid in enumerate(uuids)] or [open_sensors("cpu", None, 0)]
    # each GPU brings the processor's sensor along; once is enough
    sensors = [s for i, (own, _) in enumerate(opened) for s in own if i == 0 or s.metrics[0].sensor != "cpu"]
    newest: dict[Key, Sample] = {}
    start = time.perf_counter()

    def now() -> float:
        return time.perf_counter() - start

    sampler = Sampler(sensors, lambda sample: newest.__setitem__(_key(sample), sample), now)
    entries = [info.to_json() for sensor in sensors for info in sensor.metrics]
    sampler.start()
    try:
        _print_until(seconds, entries, newest, now, sys.stdout)
    except KeyboardInterrupt:
        pass
    finally:
        sampler.stop()
        for sensor in sensors:
            sensor.close()
    if sampler.failure is not None:
        print(sampler.failure, file=sys.stderr)
    return 0 if sampler.failure is None else 1


def _announced_gpus() -> list[str]:
    """UUIDs of the visible GPUs, each introduced by one line; none, with the reason, where there is no driver."""
    try:
        uuids = visible_uuids(os.environ)
        for index, uuid in enumerate(uuids):
            facts = driver_facts(open_device(uuid))
            memory, bandwidth = facts.memory_bytes, facts.bandwidth_bytes_per_s
            sizes = (_scaled(memory, "B") if memory else "-", _scaled(bandwidth, "B/s") if bandwidth else "-")
            print(f"[{index}] {facts.name or 'unnamed GPU'}: memory {sizes[0]}, peak by clock and bus {sizes[1]}")
    except Unavailable as error:
        print(f"No NVIDIA GPU is shown: {error}", file=sys.stderr)
        return []
    return uuids


def _print_until(
    seconds: float | None, entries: list[dict[str, Any]], newest: Mapping[Key, Sample], now: Any, out: TextIO
) -> None:
    """The table again and again: redrawn in place on a terminal, one below the other elsewhere."""
    clear = "\x1b[H\x1b[2J" if out.isatty() else ""
    while seconds is None or now() < seconds:
        time.sleep(_REFRESH_S if seconds is None else min(_REFRESH_S, max(0.0, seconds - now())))
        out.write(clear + "\n".join(_table(entries, dict(newest), now())) + "\n\n")
        out.flush()


def _table(entries: list[dict[str, Any]], newest: Mapping[Key, Sample], t: float) -> list[str]:
    return [_row(entry, newest.get((entry["sensor"], entry["metric"], entry["device"])), t) for entry in entries]


def _row(entry: Mapping[str, Any], sample: Sample | None, t: float) -> str:
    where = "" if entry["device"] is None else f"[{entry['device']}]"
    name = f"{entry['sensor']}{where} {entry['metric']}"
    if sample is None or sample.value is None:
        reason = entry["reason"] or (sample.reason if sample else None) or "no reading yet"
        return f"{name:<30} {'-':>14}  {reason}"
    shown = f"{_value(sample.value, entry['unit']):>14}"
    return f"{name:<30} {shown}  {entry['label']} ({entry['provenance']}, {max(0.0, t - sample.t1):.1f} s ago)"


def _value(value: float, unit: str) -> str:
    if unit == _PERCENT:
        return _percent(value)
    if unit in _PLAIN:
        return f"{value:.4g} {unit}"
    return _scaled(value, "B" if unit == "bytes" else unit)


def _key(sample: Sample) -> Key:
    return sample.sensor, sample.metric, sample.device


if __name__ == "__main__":
    raise SystemExit(main())
