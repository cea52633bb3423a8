"""The catalog of models, and the one way to find a model in it by the name a person types.

Rows are ``assets/catalog/models.csv``: shapes as the publishers' config.json states them, with their source, and the
published parameter count that a test holds the shape against. A person's own models come from ``catalog_file``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim.names import resolve
from sim.specs import Experts, LatentAttention, ModelSpec

CATALOG = Path(__file__).parents[1] / "assets" / "catalog" / "models.csv"


@dataclass(frozen=True, slots=True)
class Published:
    """What the publisher says of a model's size, in billions; ``active`` None for a dense model."""

    params_billions: float
    active_billions: float | None
    source: str


@cache
def all_models() -> tuple[ModelSpec, ...]:
    """All models of the catalog. Raises OSError when the file is missing."""
    return tuple(spec_of_row(row) for row in _rows())


def find_model(name: str, own: Iterable[ModelSpec] = ()) -> ModelSpec:
    """The model a name means, ``own`` ones before the catalog's; case, dashes and publisher do not matter.

    Raises LookupError with the nearest names.
    """
    specs = {spec.name: spec for spec in (*all_models(), *own)}
    return specs[resolve(name, specs, "model")]


def published_size(spec: ModelSpec) -> Published:
    """The published parameter count of a catalog model. Raises KeyError for another."""
    row = {row["name"]: row for row in _rows()}[spec.name]
    active = row["published_active_B"]
    return Published(float(row["published_params_B"]), float(active) if active else None, row["published_source"])


def spec_of_row(row: Mapping[str, str]) -> ModelSpec:
    """A row of the catalog's columns. Raises KeyError for a missing column, ValueError for a cell that is no number."""
    return ModelSpec(
        name=row["name"],
        family=row["family"],
        n_layers=int(row["n_layers"]),
        hidden=int(row["hidden"]),
        n_heads=int(row["n_heads"]),
        n_kv_heads=int(row["n_kv_heads"]),
        head_dim=int(row["head_dim"]),
        intermediate=int(row["intermediate"]),
        vocab=int(row["vocab"]),
        tied=row["tied"] == "yes",
        max_context_tokens=int(row["max_context_tokens"]),
        source=row["source"],
        qkv_bias=row["qkv_bias"] == "yes",
        window_tokens=int(row["window_tokens"]) if row["window_tokens"] else None,
        windowed_layers=int(row["windowed_layers"] or 0),
        experts=_experts(row) if row["experts"] else None,
        latent=_latent(row) if row["latent_kv_rank"] else None,
    )


def _experts(row: Mapping[str, str]) -> Experts:
    return Experts(
        count=int(row["experts"]),
        per_token=int(row["experts_per_token"]),
        intermediate=int(row["expert_intermediate"]),
        shared=int(row["shared_experts"] or 0),
        first_dense_layers=int(row["first_dense_layers"] or 0),
    )


def _latent(row: Mapping[str, str]) -> LatentAttention:
    rank = row["latent_query_rank"]
    return LatentAttention(
        query_rank=int(rank) if rank else None,
        kv_rank=int(row["latent_kv_rank"]),
        nope_dim=int(row["latent_nope_dim"]),
        rope_dim=int(row["latent_rope_dim"]),
        value_dim=int(row["latent_value_dim"]),
    )


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with CATALOG.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
