"""docs/trace.md is what readers in other languages go by: it must name all that the schema has."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from telemetry import events
from telemetry.summary import Summary

TEXT = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "cls", [events.Header, events.Ceilings, events.Device, events.Peak, Summary, *events.KINDS.values()]
)
def test_every_field_is_described(cls: type) -> None:
    missing = [f.name for f in fields(cls) if f"`{f.name}`" not in TEXT and f"`ceilings.{f.name}`" not in TEXT]
    assert missing == []


def test_every_kind_and_every_value_of_a_choice_is_described() -> None:
    assert [kind for kind in events.KINDS if f"| `{kind}` |" not in TEXT] == []
    choices = (events.Source, events.PhaseName, events.RowKind, events.Verdict, events.EndReason, events.PeakProvenance)
    values = [value for choice in choices for value in get_args(choice)] + list(get_args(events.Provenance))
    assert [value for value in values if f"`{value}`" not in TEXT] == []
