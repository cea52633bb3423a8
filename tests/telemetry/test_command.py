"""``python -m telemetry``: exit status, what goes to which stream, and that neither command needs torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from telemetry.__main__ import main
from tests.telemetry.traces import record

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(record()) + "\n", encoding="utf-8")
    return path


def test_a_whole_file_prints_every_figure(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(trace_file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for line in (
        "TTFT           500 ms",
        "prefill        1024 tok/s",
        "decode         10 tok/s",
        "ended by       length",
    ):
        assert line in out
    assert "prefill 60.0 %, decode 1.0 %; of 1 TFLOP/s (measured here, fp32 matrix product)" in out


def test_json_is_one_object(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(trace_file), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["n_prompt_tokens"], figures["energy_j"]) == (512, None)


def test_a_cut_file_is_valid_and_says_what_is_missing(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = trace_file.read_bytes()
    trace_file.write_bytes(data[: len(data) // 2])
    assert main(["check", str(trace_file), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == "The trace ended early: its last line is half written.\n"
    json.loads(out)


@pytest.mark.parametrize(
    "name", ["g_not_a_trace.json", "g_chrome_unclosed.json", "g_asciicast_v2.cast", "absent.jsonl"]
)
def test_what_is_no_trace_exits_with_1_and_one_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(CASES / name), "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith(".\n")


def test_check_imports_neither_torch_nor_pynvml(trace_file: Path) -> None:
    code = (
        "import sys, telemetry.__main__ as m; code = m.main(['check', sys.argv[1], '--json']);"
        "sys.exit(code or any(name in sys.modules for name in ('torch', 'pynvml', 'psutil')))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, trace_file], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_watch_prints_a_line_a_metric_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--seconds", "0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("cpu_busy" in line and "%" in line and "driver_time_fraction" in line for line in lines)
    assert any("worker_rss_bytes" in line for line in lines)
