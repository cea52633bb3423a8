"""``python -m engine record``: a trace and figures from a terminal, cold run apart."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.record import Recorded, add_arguments, figures, in_words, main, median_run
from telemetry.events import Device, Event, Header, Request, Row, Step, Token, encode_event, encode_header
from telemetry.recorder import Recorder
from telemetry.summary import summarise
from telemetry.trace import read_trace
from tests.engine.fakes import gguf_at

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("one_thread")]
ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent.parent / "cases"


def record(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", "record", "--device", "cpu", "--threads", "1", *arguments],
        cwd=ROOT,
        env={**os.environ, "SILICONSCOPE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def made_up(prefill_s: float, decode_s: float, n_prompt: int, n_new: int, load_s: float, warmup_s: float) -> Recorded:
    """A run on a clock of its own: one prefill step, then evenly spaced tokens."""
    lines: list[str] = []
    header = Header("r", "2026-01-01T00:00:00+00:00", "live", {"name": "toy"}, "fp32", load_s=load_s, warmup_s=warmup_s)
    Recorder(replace(header, devices=(Device("toy", "cpu"),)), lines.append)
    step = Step(0, 0.0, prefill_s, "target", (Row(0, n_prompt, 0, "prefill"),), None, None, "host")
    bodies: list[tuple[float, Any]] = [(0.0, Request(0, n_prompt, n_new)), (prefill_s, step)]
    gap = decode_s / (n_new - 1)
    bodies += [(prefill_s + i * gap, Token(0, None, n_prompt + i, "x")) for i in range(n_new)]
    lines += [encode_event(Event(n, t, body)) for n, (t, body) in enumerate(bodies)]
    trace = read_trace(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
    return Recorded(tuple(lines), trace, summarise(trace))


def test_load_warm_up_and_first_token_stand_apart_and_the_cold_run_is_out_of_the_mean() -> None:
    case = json.loads((CASES / "c_cold_warm.json").read_text(encoding="utf-8"))
    runs = [
        made_up(r["prefill_s"], r["decode_s"], r["prompt_tokens"], r["tokens"], r["load_s"], r["first_call_compile_s"])
        for r in case["runs"]
    ]
    report, expect = figures(runs, runs[1]), case["expect"]
    assert report["warm"]["runs"] == 1
    assert report["warm"]["median"]["ttft_s"] == pytest.approx(expect["ttft_run2_s"])
    assert report["warm"]["median"]["prefill_tok_s"] == pytest.approx(expect["prefill_tok_s_run2"])
    for run in (report["cold"], report["warm"]["median"]):
        assert run["decode_tok_s"] == pytest.approx(expect["decode_tok_s_both"])
        assert run["decode_tok_s"] not in expect["not_called_decode_tok_s"]
    assert report["cold"]["ttft_s"] == pytest.approx(1.1)
    cold = figures(runs[:1], runs[0])
    assert (cold["load_s"], cold["warmup_s"], cold["warm"]) == (29.0, 6.5, None)
    words = in_words(report)
    assert all(name in words for name in ("load", "warm-up", "TTFT", "decode", "cold run", "warm median"))
    assert "memory: prefill -, decode - of a ceiling that is not known" in words


def test_shares_are_printed_with_what_they_are_shares_of() -> None:
    run = made_up(1.0, 4.0, 10, 5, 0.0, 0.0)
    peak = {"quantity": "flops", "value": 478e9, "label": "measured here"}
    bus = {"quantity": "bytes_per_s", "value": 55e9, "label": "datasheet"}
    report = figures([run], run) | {
        "mfu": {"prefill": 0.794, "decode": 0.0312},
        "mbu": {"prefill": None, "decode": 0.5},
        "denominators": {"prefill_compute": peak, "decode_compute": peak, "memory": bus, "from_cache": True},
    }
    assert in_words(report).splitlines()[-2:] == [
        "compute: prefill 79.4 %, decode 3.12 % of 478 GFLOP/s (measured here)",
        "memory, from cache: prefill -, decode 50 % of 55 GB/s (datasheet)",
    ]


def test_the_written_run_is_the_one_whose_time_is_the_median() -> None:
    runs = [made_up(1.0, s, 10, 5, 0.0, 0.0) for s in (4.0, 9.0, 2.0)]
    assert median_run(runs) is runs[0]


def test_a_recording_of_the_embedded_model_from_a_terminal(cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    done = record(
        cache,
        *("--precision", "fp32", "--prompt-tokens", "40", "--new-tokens", "4", "--repeat", "2"),
        *("--out", str(out), "--json", "--title", "A short one"),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    trace = read_trace(out)
    assert not trace.notes and not trace.ended_early
    assert trace.header.title == "A short one"
    assert trace.header.engine["cold"] is False
    assert encode_header(trace.header)
    assert {k: report[k] for k in summarise(trace).to_json()} == json.loads(json.dumps(summarise(trace).to_json()))
    assert (report["n_prompt_tokens"], report["n_new_tokens"], report["warm"]["runs"]) == (40, 4, 2)
    # The ceilings put there are far too low: what the run reached takes their place, and no share passes 100 %.
    assert report["denominators"]["memory"]["label"] == "reached here by this run"
    assert max(report["mbu"].values()) == pytest.approx(1.0, abs=1e-4)  # times are written in 0.1 us
    assert max(report["mfu"].values()) <= 1.0 + 1e-4


def test_a_prompt_file_is_read_and_its_text_withheld(cache: Path, tmp_path: Path) -> None:
    prompt, out = tmp_path / "prompt.txt", tmp_path / "t.jsonl"
    prompt.write_text("Say hi. 🔥", encoding="utf-8")
    given = ("--precision", "fp32", "--prompt-file", str(prompt), "--new-tokens", "2", "--withhold-text")
    done = record(cache, *given, "--out", str(out))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "2 new" in done.stdout
    assert "🔥" not in out.read_text(encoding="utf-8")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_costs_the_trace_and_not_the_figures(cache: Path) -> None:
    given = ("--precision", "fp32", "--prompt-tokens", "40", "--new-tokens", "2", "--json")
    done = record(cache, *given, "--out", "/dev/full")
    assert done.returncode == 2
    assert json.loads(done.stdout)["n_new_tokens"] == 2
    assert done.stderr.splitlines()[-1] == "The trace could not be written to /dev/full: No space left on device."


@pytest.mark.parametrize(
    "bad",
    [
        ("--prompt-file", "{tmp}/no.txt"),
        ("--prompt-file", "{tmp}"),
        ("--prompt-file", "{tmp}/latin.txt"),
        ("--prompt-tokens", "40", "--out", "{tmp}"),
        ("--prompt-tokens", "40", "--out", "{tmp}/none/t.jsonl"),
        ("--prompt-tokens", "5", "--model", "{tmp}/prompt.txt"),
        ("--prompt-tokens", "5", "--model", "{tmp}/torn.gguf"),
        ("--prompt-tokens", "5", "--model", "{tmp}/nowhere"),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(
    bad: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompt.txt").write_text("Hi")
    (tmp_path / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    gguf_at(tmp_path / "torn.gguf")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = [part.format(tmp=tmp_path) for part in bad]
    assert main(parser.parse_args([*given, "--precision", "fp32", "--new-tokens", "2", "--threads", "1"])) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Reading")]
    assert len(said) == 1 and said[0].endswith(".") and "Errno" not in said[0] and "codec" not in said[0]


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nfrom engine.__main__ import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as e:\n    sys.exit(e.code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "devicecheck" in done.stdout


def test_without_torch_there_is_a_sentence() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nfrom engine.__main__ import main\n"
        "sys.exit(main(['record', '--prompt-tokens', '40', '--new-tokens', '2']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("PyTorch is not installed here") and len(done.stderr.splitlines()) == 1
