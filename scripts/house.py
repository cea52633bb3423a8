"""Writes the README's file tree from what each file says of itself in its first sentence.

``python scripts/house.py`` prints the tree, ``--write`` puts it into README.md. A test holds the README against it, so
a file that does not say what it is, or a line for a file that is gone, cannot stay. Tests are left out: they mirror the
packages.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
ROOMS = ("app.py", "sim", "telemetry", "engine", "sources", "server", "ui", "assets", "bench", "docs", "scripts")
KINDS = {".py", ".js", ".css", ".csv", ".md", ".sh", ".toml", ".txt", ""}
SAID_HERE = {
    ".streamlit/config.toml": "Streamlit's settings: localhost only, no file watching, no usage statistics; the theme",
    "assets/catalog/allreduce.csv": "Published all-reduce times by size and number of GPUs",
    "assets/catalog/hardware.csv": "Published peaks of devices, each with its source",
    "assets/catalog/measured/batching.csv": "Published throughput by batch",
    "assets/catalog/measured/kernels.csv": "Published times of a layer's matrix products",
    "assets/catalog/measured/measured.csv": "Published speeds of whole models, with engine, format and reliability",
    "assets/catalog/measured/speculation.csv": "Published speculative decoding results",
    "assets/catalog/models.csv": "Shapes of models as published, each with its source and published size",
    "pyproject.toml": "Settings of ruff, mypy and pytest",
}
BLOCK = re.compile(r"(?<=```text\n).*?(?=```\n)", re.S)


def files() -> list[str]:
    """Every file of the project that a person may want to read, rooms in their order, then the rest."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = [name for name in listing if _wanted(name)]
    return sorted(wanted, key=lambda name: (_room(name), name))


def first_sentence(name: str) -> str:
    """What the file says it is. Raises ValueError when it says nothing."""
    text = (ROOT / name).read_text(encoding="utf-8")
    said = SAID_HERE.get(name) or (_docstring(text) if name.endswith(".py") else _first_comment(text))
    sentence = re.split(r"(?<=[.;])\s|\n\n", said.strip(), maxsplit=1)[0]
    if not sentence:
        raise ValueError(f"{name} does not open with what it is.")
    return " ".join(sentence.split()).replace("``", "").rstrip(".;")


def tree() -> str:
    """The whole tree, one line a file."""
    names = files()
    width = max(map(len, names)) + 2
    return "".join(f"{name:{width}}{first_sentence(name)}\n" for name in names)


def _wanted(name: str) -> bool:
    path = ROOT / name
    listed = path.suffix in KINDS and not name.startswith((".git", "tests/", "assets/traces/")) and name != "README.md"
    return listed and path.is_file() and path.stat().st_size > 0


def _room(name: str) -> int:
    top = name.split("/")[0]
    return ROOMS.index(top) if top in ROOMS else len(ROOMS)


def _docstring(text: str) -> str:
    return ast.get_docstring(ast.parse(text)) or ""


def _first_comment(text: str) -> str:
    """The first lines that are words, without the marks of a comment or a title."""
    lines = [line for line in text.splitlines() if not line.startswith("#!")]
    words = [re.sub(r"^\s*(//|/\*\*?|#+|\*)\s?|\s*\*/$", "", line) for line in lines]
    return "\n".join(words).strip()


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        README.write_text(BLOCK.sub(lambda _: tree(), README.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    else:
        print(tree(), end="")
