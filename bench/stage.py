"""The page in a real browser: frames, long tasks, what a viewer costs the server, and how late an event is drawn.

    python -m bench.stage [--seconds 10]

Replay first; then live with the embedded model, the engine on all cores and with one core left free. A frame is a call
of requestAnimationFrame. An event's delay runs from its moment on the run's clock (header's ``created`` + t, the same
machine's wall clock) to the first frame whose state includes it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

from bench.serving import Served, served

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
SETTLE_S = 4.0
READY_MS = 180_000

WATCH = """
window.watched = {frames: [], tasks: [], on: false};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (watched.on) watched.tasks.push(entry.duration);
}).observe({type: "longtask"});
const stageOf = (node) => {
  for (const el of node.querySelectorAll("*")) {
    const found = el.shadowRoot && stageOf(el.shadowRoot);
    if (found) return found;
  }
  return node.querySelector("div.stage");
};
const look = () => {
  requestAnimationFrame(look);
  if (!watched.on) return;
  watched.stage ??= stageOf(document);
  watched.frames.push([performance.timeOrigin + performance.now(), Number(watched.stage?.dataset.t)]);
};
requestAnimationFrame(look);
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the page itself saw: (wall clock in ms, the stage's place on the run's clock) a frame; long tasks in ms."""

    frames: list[tuple[float, float]]
    tasks_ms: list[float]

    @property
    def fps(self) -> float:
        gaps = [b[0] - a[0] for a, b in zip(self.frames, self.frames[1:], strict=False)]
        return 1000 / median(gaps)

    @property
    def mean_fps(self) -> float:
        return 1000 * (len(self.frames) - 1) / (self.frames[-1][0] - self.frames[0][0])

    def __str__(self) -> str:
        longest = max(self.tasks_ms, default=0.0)
        over = sum(task > 100 for task in self.tasks_ms)
        return (
            f"{self.fps:.0f} frames/s by the median gap, {self.mean_fps:.0f} counted; "
            f"{over} tasks over 100 ms, longest {longest:.0f} ms"
        )


def watch(page: Page, seconds: float) -> Watched:
    page.evaluate("watched.frames = []; watched.tasks = []; watched.on = true")
    page.wait_for_timeout(1000 * seconds)
    frames, tasks = page.evaluate("(watched.on = false, [watched.frames, watched.tasks])")
    return Watched([(wall, t) for wall, t in frames if t is not None], tasks)


def replay(page: Page, server: Served, seconds: float) -> None:
    server.process.cpu_percent()
    time.sleep(seconds)
    idle_pct = server.process.cpu_percent()
    begin = time.perf_counter()
    page.goto(server.url)
    page.locator('div.stage[data-state="playing"]').wait_for()
    print(f"opening the page to a moving stage: {time.perf_counter() - begin:.2f} s")
    page.wait_for_timeout(1000 * SETTLE_S)
    server.process.cpu_percent()
    seen = watch(page, seconds)
    print(f"replay: {seen}")
    print(f"replay: server {server.process.cpu_percent():.2f} % of one core with the viewer, {idle_pct:.2f} % without")


def live(page: Page, server: Served, title: str, new_tokens: int) -> None:
    page.goto(server.url)
    button = page.locator("div.stage").get_by_role("button", name="Run on this machine")
    page.locator('div.stage [data-action="run"]').first.wait_for(timeout=READY_MS)
    page.get_by_text("Settings of the next run").click()
    field = page.get_by_label("New tokens")
    field.fill(str(new_tokens))
    field.press("Enter")
    page.get_by_text("Settings of the next run").click()
    page.wait_for_timeout(1000 * SETTLE_S)
    page.evaluate("watched.frames = []; watched.tasks = []; watched.on = true")
    button.click()
    page.locator('div.stage[data-source="live"]').wait_for()
    page.locator('div.stage[data-source="recorded"]').wait_for(timeout=READY_MS)
    frames, tasks = page.evaluate("(watched.on = false, [watched.frames, watched.tasks])")
    run_id = page.locator("div.stage").get_attribute("data-run")
    trace = (server.runs / f"{run_id}.jsonl").read_text(encoding="utf-8").splitlines()
    delays_ms, span = event_delays(trace, [(wall, t) for wall, t in frames if t is not None])
    inside = Watched([f for f in frames if span[0] <= f[0] <= span[1]], tasks)
    print(f"live, {title}: {inside}")
    print(f"live, {title}: event to pixels median {median(delays_ms):.0f} ms, p95 {p95(delays_ms):.0f} ms")


def event_delays(trace: list[str], frames: list[tuple[float, float]]) -> tuple[list[float], tuple[float, float]]:
    """Delay of each step and token in ms, and the run's span on the wall clock in ms."""
    origin_ms = 1000 * datetime.fromisoformat(json.loads(trace[0])["created"]).timestamp()
    times = [event["t"] for event in map(json.loads, trace[1:]) if event["k"] in ("step", "token")]
    delays: list[float] = []
    at = 0
    for t in sorted(times):
        while at < len(frames) and (frames[at][0] < origin_ms or frames[at][1] < t - 1e-4):
            at += 1
        if at < len(frames):
            delays.append(frames[at][0] - origin_ms - 1000 * t)
    return delays, (origin_ms, origin_ms + 1000 * max(times))


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def chromium() -> str:
    named = os.environ.get("SILICONSCOPE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found or not Path(found).exists():
        raise SystemExit("No Chromium: put one on PATH or name it in SILICONSCOPE_CHROMIUM.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--new-tokens", type=int, default=400)
    args = parser.parse_args()
    cores = os.cpu_count() or 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)

        def fresh_page() -> Page:
            page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
            page.add_init_script(WATCH)
            return page

        with served("app.py", SILICONSCOPE_LIVE="0") as server:
            replay(fresh_page(), server, args.seconds)
        for threads, title in ((cores, f"engine on all {cores} cores"), (cores - 1, "one core left free")):
            with served("app.py", SILICONSCOPE_THREADS=str(threads)) as server:
                live(fresh_page(), server, title, args.new_tokens)
        browser.close()


if __name__ == "__main__":
    main()
