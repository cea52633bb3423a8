"""The device check: every section's code runs on a CPU in a tiny shape, with torch and numpy and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.devicecheck.rows import Results, Row, shown
from telemetry.summary import summarise
from telemetry.trace import read_trace

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]

ALL_SECTIONS = """
import sys
BLOCKED = {"tokenizers", "jinja2", "psutil", "pynvml", "transformers", "safetensors", "gguf", "triton", "streamlit"}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in BLOCKED else find(name, *rest)
import torch
torch.set_num_threads(1)
from engine.__main__ import main
for section in ("environment", "ceilings", "counters", "1B", "8B", "70B"):
    code = main(["devicecheck", "--out", sys.argv[1], "--device", "cpu", "--shape", "tiny", "--section", section])
    assert code == 0
assert not BLOCKED & set(sys.modules)
"""


def check(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "engine", "devicecheck"]
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_every_section_runs_with_torch_and_numpy_alone(tmp_path: Path) -> None:
    done = check(str(tmp_path), code=ALL_SECTIONS)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = rows_of(tmp_path)
    assert not [r for r in rows if r["what"] == "broken off"]
    found = {(r["section"], r["what"]): r["value"] for r in rows}
    assert found["environment", "tokenizers"] is None
    assert found["counters", "cpu_busy"] is None
    assert found["8B", "graph against eager: greatest difference of a logit"] == 0
    assert found["8B", "graph against eager: same choice"] == 1
    for section, precision in (("1B", "bf16"), ("1B", "int8"), ("8B", "bf16"), ("70B", "int8")):
        trace = read_trace(tmp_path / f"{section}-{precision}-graph.jsonl")
        assert trace.header.text_withheld and not trace.ended_early
        assert summarise(trace).n_new_tokens == 8
        assert found[section, f"{precision}, graph: decode"] == summarise(trace).decode_tok_s


def test_a_section_that_ends_early_is_said_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    from engine import devicecheck

    options = argparse.Namespace(out=tmp_path, device="cpu", shape="tiny", section=None)
    results = Results(tmp_path)
    results.clear()
    assert not devicecheck._run_apart(options, "environment", 0.01, float("inf"), results)
    assert not devicecheck._run_apart(options, "environment", 30.0, 0.0, results)
    notes = [r.note for r in results.rows()]
    assert any("limit" in n for n in notes) and "the six minutes were over" in notes
    assert (tmp_path / "table.md").read_text().startswith("| section |")


def test_without_cuda_it_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = check("--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.strip().startswith("There is no CUDA GPU here") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_limits_of_all_sections_are_six_minutes_at_most() -> None:
    from engine.devicecheck import TOTAL_S

    assert TOTAL_S <= 360


def test_a_torn_line_costs_itself_and_unknown_is_a_dash(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.clear()
    results.add(Row("a", "b", 1234.5678, "tok/s"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"section": "a", "wh')
    assert results.rows() == [Row("a", "b", 1234.5678, "tok/s")]
    assert [shown(r) for r in (*results.rows(), Row("a", "b", None, "s"))] == ["1235 tok/s", "-"]
