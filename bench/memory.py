"""How much memory the engine takes at its peak, and how soon it is ready: a fresh worker a precision.

    python -m bench.memory

Peak memory is the operating system's own count for the whole worker process (VmHWM, mapped file pages included) after
a 1,500-token prompt and 32 new tokens, no measuring of ceilings in it. Ready is from asking for the model to the
engine's word that it is ready, torch's import aside.
"""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys, time
from pathlib import Path
import torch
from engine.catalog import embedded_model
from engine.load import open_model
begin = time.perf_counter()
model = open_model(embedded_model(), lambda doing, share: None)
backend = model.build(sys.argv[1], torch.device("cpu"), 2048)
ready_s = time.perf_counter() - begin
for position in range(0, 1500, backend.prefill_chunk):
    backend.prefill(torch.arange(100, 100 + min(backend.prefill_chunk, 1500 - position)), position)
for i in range(32):
    backend.decode(100 + i, 1500 + i)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(f"{sys.argv[1]}: ready in {ready_s:.2f} s, peak {int(peak.split()[1]) / 1e6 * 1.024:.2f} GB")
"""


def main() -> None:
    if not sys.platform.startswith("linux"):
        raise SystemExit("Peak memory is read from /proc, which this system does not have.")
    for precision in ("fp32", "bf16", "int8", "int4"):
        subprocess.run([sys.executable, "-c", PROBE, precision], check=True)


if __name__ == "__main__":
    main()
