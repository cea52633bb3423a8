"""``python -m engine devicecheck``: what our figures are worth on a device nobody here has seen. Six minutes at most.

Needs torch and numpy and nothing else: no network, no model file, no tokenizer; a package that is missing is a row of
the table. Weights and tokens are random, in the shapes of real models, and text is withheld, so its traces are drawn as
blocks. Each section runs in a process of its own with its own time limit and writes each row as it is found, so a hang
or a crash costs that section's remaining rows and nothing else.

Without CUDA there is nothing to check; ``--device cpu --shape tiny`` runs every section's code for its own sake.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from engine.devicecheck.rows import Results, Row
from engine.devicecheck.sections import SECTIONS, Settings, run_section

TOTAL_S = 355.0
NO_CUDA = (
    "There is no CUDA GPU here, so there is nothing to check; --device cpu --shape tiny runs the code for its own sake."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="folder for results.jsonl, table.md and traces")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--shape", choices=("full", "tiny"), default="full")
    parser.add_argument(
        "--section", choices=tuple(s.name for s in SECTIONS), help="run this one alone, in this process"
    )


def main(options: argparse.Namespace) -> int:
    """Returns 0 when every section ended by itself, 1 when one did not, 2 when there is no such device."""
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        print(NO_CUDA, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    results = Results(options.out)
    if options.section is not None:
        run_section(options.section, Settings(options.device, options.shape == "tiny", options.out), results.add)
        return 0
    results.clear()
    deadline = time.monotonic() + TOTAL_S
    sound = [_run_apart(options, s.name, s.limit_s, deadline, results) for s in SECTIONS]
    print(results.table())
    return 0 if all(sound) else 1


def _run_apart(options: argparse.Namespace, name: str, limit_s: float, deadline: float, results: Results) -> bool:
    left_s = min(limit_s, deadline - time.monotonic())
    if left_s <= 0:
        results.add(Row(name, "not run", None, note="the six minutes were over"))
        return False
    command = [sys.executable, "-m", "engine", "devicecheck", "--section", name, "--out", str(options.out)]
    command += ["--device", options.device, "--shape", options.shape]
    begun = time.monotonic()
    try:
        code = subprocess.run(command, timeout=left_s).returncode
        problem = None if code == 0 else f"it ended with exit code {code}"
    except subprocess.TimeoutExpired:
        problem = f"its limit of {left_s:.0f} s was reached"
    if problem is not None:
        results.add(Row(name, "broken off", None, note=problem))
    results.add(Row(name, "section took", time.monotonic() - begun, "s"))
    results.write_table()
    return problem is None
