"""What viewers cost the server: CPU of the server's process with 1 and 60 websocket viewers of a 50 events/s run.

    python -m bench.fanout [--viewers 60] [--seconds 15]

The server is the product's own (bench/paced_app.py); viewers are sockets in this process, which checks that each of
them got every event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

import psutil
from websockets.asyncio.client import connect

from bench.recordings import opening_recording
from bench.serving import served


def wait_for(path: Path, limit_s: float = 30.0) -> str:
    end = time.perf_counter() + limit_s
    while time.perf_counter() < end:
        if path.exists() and (text := path.read_text(encoding="utf-8")):
            return text
        time.sleep(0.05)
    raise SystemExit("The server did not start a run.")


async def watch(url: str, until: float) -> int:
    """Follow the run until the loop's clock shows ``until``; how many events came. Raises ValueError on a hole."""
    expected: int | None = None
    count = 0
    async with connect(url) as viewer:
        while (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                message = await asyncio.wait_for(viewer.recv(), left)
            except TimeoutError:
                break
            for line in str(message).splitlines():
                n = json.loads(line).get("n")
                if n is None:
                    continue
                if expected is not None and n != expected:
                    raise ValueError(f"A viewer got event {n} where {expected} was due.")
                expected, count = n + 1, count + 1
    return count


async def measure(url: str, viewers: int, seconds: float, server: psutil.Process) -> tuple[float, int]:
    """CPU of the server in % of one core over ``seconds``, and the fewest events that a viewer got."""
    until = asyncio.get_running_loop().time() + seconds
    tasks = [asyncio.create_task(watch(url, until)) for _ in range(viewers)]
    await asyncio.sleep(2.0)
    server.cpu_percent()
    await asyncio.sleep(seconds - 3.0)
    cpu_pct = server.cpu_percent()
    return cpu_pct, min(await asyncio.gather(*tasks), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    with served("bench/paced_app.py", BENCH_RECORDING=str(opening_recording())) as server:
        run_id = wait_for(server.runs / "run-id")
        time.sleep(3.0)
        url = f"{server.url.replace('http', 'ws')}api/run?run={run_id}&from=1"
        for viewers in (0, 1, args.viewers):
            cpu_pct, fewest = asyncio.run(measure(url, viewers, args.seconds, server.process))
            print(f"{viewers} viewers at 50 events/s: server {cpu_pct:.1f} % of one core, fewest events {fewest}")


if __name__ == "__main__":
    main()
