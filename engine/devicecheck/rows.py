"""One finding a row, on disk the moment it is found: JSON lines for machines, a Markdown table for people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """``value`` None: it could not be found out; ``note`` says why."""

    section: str
    what: str
    value: float | str | None
    unit: str = ""
    note: str = ""


class Results:
    """The rows of one check, in ``folder``; processes take turns, each appending whole lines."""

    def __init__(self, folder: Path) -> None:
        self._lines = folder / "results.jsonl"
        self._table = folder / "table.md"

    def clear(self) -> None:
        self._lines.write_text("", encoding="utf-8")

    def add(self, row: Row) -> None:
        with self._lines.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
        print(f"{row.section}: {row.what}: {shown(row)}", flush=True)

    def rows(self) -> list[Row]:
        """All rows so far; a line torn by a kill is left out."""
        found = []
        for line in self._lines.read_text(encoding="utf-8").splitlines():
            try:
                found.append(Row(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def table(self) -> str:
        lines = ["| section | what | value | note |", "|---|---|---|---|"]
        lines += [f"| {r.section} | {r.what} | {shown(r)} | {r.note} |" for r in self.rows()]
        return "\n".join(lines)

    def write_table(self) -> None:
        self._table.write_text(self.table() + "\n", encoding="utf-8", newline="\n")


def shown(row: Row) -> str:
    """The value for a person: a dash when there is none, four digits that count."""
    if row.value is None:
        return "-"
    value = f"{row.value:.4g}" if isinstance(row.value, float) else str(row.value)
    return f"{value} {row.unit}".rstrip()
