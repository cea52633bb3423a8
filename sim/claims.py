"""The claims ledger: what the story says, what we compute, when it holds, and the setting that shows it.

One row a claim of the explanatory story that this project brings to life. Every figure of ours is computed here and now
from catalogs, costs and the roofline's bounds; a page prints these sentences and types no number of its own. The rows
stand in ``ledger/``.
"""

from __future__ import annotations

from functools import cache

from sim.ledger import reading, serving, writing
from sim.ledger.claim import Claim, StageSetting, Verdict

__all__ = ["Claim", "StageSetting", "Verdict", "claim", "ledger"]


@cache
def ledger() -> tuple[Claim, ...]:
    """All claims, in the order of their ids; "C1+C2" follows C2."""
    return tuple(sorted((*reading.claims(), *writing.claims(), *serving.claims()), key=_place))


def claim(claim_id: str) -> Claim:
    """One row. Raises LookupError with the ids there are."""
    rows = {row.id: row for row in ledger()}
    if claim_id not in rows:
        raise LookupError(f"No claim is called {claim_id!r}; there are {', '.join(rows)}.")
    return rows[claim_id]


def _place(row: Claim) -> tuple[int, int]:
    ids = [int(part.removeprefix("C")) for part in row.id.split("+")]
    return ids[-1], len(ids)
