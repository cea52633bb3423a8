"""The rules that hold the house together, read off the source: who imports whom, and what the README lists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "sim": set(),
    "telemetry": {"sim"},
    "engine": {"sim", "telemetry"},
    "sources": {"sim", "telemetry"},
    "server": {"sim", "telemetry"},
    "ui": {"sim", "telemetry", "server"},
}
LIVE_ONLY = {"torch", "transformers", "tokenizers", "safetensors", "gguf", "triton", "huggingface_hub"}


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).exists()]


def sources(package: str) -> list[Path]:
    """Every module but ``__main__``: those are wiring, may import everything, and nothing may import them."""
    return [path for path in (ROOT / package).rglob("*.py") if path.name != "__main__.py"]


def imports(nodes: Iterator[ast.AST] | list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and node.level == 0, "relative import"
            found.add(node.module)
    return found


def run_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """Everything but the insides of functions and of ``if TYPE_CHECKING``."""
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if typing_only or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        stack += ast.iter_child_nodes(node)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_each_package_imports_only_what_the_table_allows(package: str) -> None:
    modules = sources(package)
    assert modules
    for path in modules:
        names = imports(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        ours = {name.split(".")[0] for name in names} & (MAY_IMPORT.keys() | {"app", "bench", "tests"})
        assert ours <= MAY_IMPORT[package] | {package}, f"{path.relative_to(ROOT)} imports {ours}"
        assert not [name for name in names if name.endswith("__main__")], path


@pytest.mark.parametrize("package", MAY_IMPORT.keys() - {"engine"})
def test_replay_needs_neither_torch_nor_nvml(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        everywhere = {name.split(".")[0] for name in imports(ast.walk(tree))}
        at_import = {name.split(".")[0] for name in imports(run_at_import(tree))}
        assert not everywhere & LIVE_ONLY, path
        assert "pynvml" not in at_import, path


def test_the_readmes_tree_is_what_the_files_say_of_themselves() -> None:
    """On a difference: python scripts/house.py --write."""
    house = [sys.executable, str(ROOT / "scripts" / "house.py")]
    tree = subprocess.run(house, capture_output=True, text=True, check=True).stdout
    assert tree in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of one machine and no unfinished business in what is shipped."""
    forbidden = re.compile(r"/work/|/tmp/\w|/root/|/home/\w|\bTO" r"DO\b|\bFIX" r"ME\b|NotImplemented" r"Error")
    for path in tracked():
        if path.suffix in {".py", ".js", ".css", ".md", ".toml", ".sh", ".txt", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            hit = forbidden.search(text)
            assert hit is None or path == Path(__file__), f"{path.relative_to(ROOT)}: {hit and hit[0]}"
