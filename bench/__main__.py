"""All benchmarks, one after the other, each in a process of its own: ``python -m bench``."""

from __future__ import annotations

import subprocess
import sys

ALL = ("engine", "memory", "telemetry_overhead", "fanout", "stage")

if __name__ == "__main__":
    for name in ALL:
        print(f"\n== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True)
