"""The stage's own modules, tested in the browser they run in: one pytest case for each case in unit/*.test.js, and the
agreement of the page's summary with the file check's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from telemetry.summary import summarise
from telemetry.trace import read_trace
from tests.browser.unit import traces
from tests.browser.unit.site import ROOT, UNIT, Site, serve_site

pytestmark = pytest.mark.browser

SHIPPED = sorted((ROOT / "assets" / "traces").glob("*.jsonl"))
MADE_UP = {
    "plain": traces.plain_run([f" w{i}" for i in range(30)]),
    "awkward": traces.awkward_run(),
    "one token": traces.plain_run(["x"]),
    "no ceilings": traces.plain_run(["x", "y"], ceilings=traces.Ceilings()),
}


def js_cases() -> list[Any]:
    """(file, name) of every case, read off the sources so that each has a line of its own in the report."""
    found = [
        (path.name, name)
        for path in sorted(UNIT.glob("*.test.js"))
        for name in re.findall(r'^test\("([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    return [pytest.param(file, name, id=f"{file.split('.')[0]}: {name}") for file, name in found]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve_site() as site:
        yield site


@pytest.fixture(scope="module")
def runner(browser: Browser, site: Site) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(f"{site.url}unit/runner.html")
    page.wait_for_function("() => window.runOne")
    yield page
    page.close()


@pytest.mark.parametrize(("file", "name"), js_cases())
def test_module(runner: Page, file: str, name: str) -> None:
    problem = runner.evaluate("([file, name]) => window.runOne(file, name)", [file, name])
    assert problem is None, problem


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_page_sums_a_shipped_trace_up_as_the_file_check_does(runner: Page, path: Path) -> None:
    assert_same_summary(runner, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MADE_UP)
def test_the_page_sums_a_made_up_trace_up_as_the_file_check_does(runner: Page, name: str) -> None:
    assert_same_summary(runner, MADE_UP[name])


def assert_same_summary(runner: Page, text: str) -> None:
    wanted = summarise(read_trace(BytesIO(text.encode()))).to_json()
    found = runner.evaluate(
        """async (text) => {
            const { RunStore } = await import("/assets/stage/store.js");
            const { summarise } = await import("/assets/stage/summary.js");
            const store = new RunStore("a");
            for (const line of text.split("\\n")) store.takeLine(line);
            return summarise(store.fold);
        }""",
        text,
    )
    assert_same(found, wanted, "summary")


def assert_same(found: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for key, value in wanted.items():
            assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(wanted, float) and isinstance(found, int | float):
        assert math.isclose(found, wanted, rel_tol=1e-9), f"{where}: {found} on the page, {wanted} in the file check"
    else:
        assert found == wanted, f"{where}: {found} on the page, {wanted} in the file check"
