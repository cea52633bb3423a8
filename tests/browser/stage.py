"""What the browser tests say about a stage, in one place. Locators pierce the shadow root it lives in."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

RUN = "Run on this machine"
STOP = "Stop"
# Ceilings and offers are measured once, before the first run.
FIRST_READY_MS = 180_000
RUN_LIMIT_MS = 60_000


class Stage:
    """The one stage of a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root: Locator = page.locator("div.stage")

    def frames(self) -> int:
        return int(self.root.get_attribute("data-frames") or 0)

    def t(self) -> float:
        return float(self.root.get_attribute("data-t") or "nan")

    def run_id(self) -> str:
        return self.root.get_attribute("data-run") or ""

    def expect(self, name: str, value: str | re.Pattern[str], timeout_ms: float = 40_000) -> None:
        expect(self.root).to_have_attribute(f"data-{name}", value, timeout=timeout_ms)

    def wait_for_frames(self, more: int = 10) -> None:
        """Waits until it has drawn that many frames more; fails when it stands still."""
        goal = self.frames() + more
        for _ in range(200):
            if self.frames() >= goal:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"the stage drew {self.frames()} frames, {goal} were expected")

    def wait_until_ready(self) -> None:
        """Waits until the engine can run something."""
        button = self.root.get_by_role("button", name=RUN)
        expect(button).to_have_attribute("data-action", "run", timeout=FIRST_READY_MS)

    def press_run(self) -> str:
        """Presses the button and gives the id of the run that came to the stage."""
        before = self.run_id()
        self.root.get_by_role("button", name=RUN).click()
        self.expect("run", re.compile(rf"^(?!{re.escape(before)}$).+"))
        self.expect("source", "live")
        return self.run_id()

    def press_stop(self) -> None:
        self.root.get_by_role("button", name=STOP, exact=True).click()

    def text(self) -> str:
        return self.root.inner_text()


def choose_long_run(page: Page, new_tokens: int = 600) -> None:
    """Own settings for a run that is still going while the test looks at it."""
    page.get_by_text("Settings of the next run").click()
    field = page.get_by_label("New tokens")
    field.fill(str(new_tokens))
    field.press("Enter")
    page.get_by_text("Settings of the next run").click()
