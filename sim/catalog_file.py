"""A person's own devices and models: a file, a form's fields, or a model's config.json. No code has to be touched.

A file is CSV with the columns of ``assets/catalog/hardware.csv`` or ``models.csv`` (its header says which), or JSON:
``{"devices": [...], "models": [...]}`` with rows of the same columns, or one model's config.json. Only the columns that
arithmetic needs must be there. Whatever is wrong is said in one sentence that names the row and the column.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sim.checks import check_count, check_rate
from sim.config_json import model_from_config
from sim.families import FAMILIES
from sim.hardware import spec_of_row as device_of_row
from sim.models import spec_of_row as model_of_row
from sim.specs import HardwareSpec, ModelSpec

MOST_BYTES = 1_000_000
MOST_ROWS = 1_000
LONGEST_NAME = 80

# Column: unit, whether it must be there, the greatest figure that is not a slip of the unit.
_DEVICE_RATES: dict[str, tuple[str, bool, float]] = {
    "memory_GiB": ("GiB", True, 1e5),
    "bandwidth_GBps": ("GB/s", True, 1e6),
    "fp16_dense_TFLOPS": ("TFLOP/s", False, 1e6),
    "fp16_fp16acc_TFLOPS": ("TFLOP/s", False, 1e6),
    "fp8_dense_TFLOPS": ("TFLOP/s", False, 1e6),
    "int8_dense_TOPS": ("TOP/s", False, 1e6),
    "fp4_dense_TFLOPS": ("TFLOP/s", False, 1e6),
    "fp32_TFLOPS": ("TFLOP/s", False, 1e6),
    "tdp_W": ("W", False, 1e5),
}
_DEVICE_WORDS = {"vendor": "", "kind": "gpu", "bf16": "yes", "year": "", "cores": "", "notes": ""}
_MODEL_COUNTS = ("n_layers", "hidden", "n_heads", "n_kv_heads", "intermediate", "vocab", "max_context_tokens")
_MODEL_OPTIONAL = (
    *("head_dim", "window_tokens", "windowed_layers"),
    *("experts", "experts_per_token", "expert_intermediate", "shared_experts", "first_dense_layers"),
    *("latent_query_rank", "latent_kv_rank", "latent_nope_dim", "latent_rope_dim", "latent_value_dim"),
)
_MODEL_WORDS = {"family": "llama", "tied": "no", "qkv_bias": "no"}
_MAY_BE_ZERO = {"windowed_layers", "shared_experts", "first_dense_layers"}
_OWN = {"source": "given by you", "confidence": "low"}

S = TypeVar("S", HardwareSpec, ModelSpec)


@dataclass(frozen=True, slots=True)
class OwnCatalog:
    """What a person added, to be looked up before the catalogs."""

    devices: tuple[HardwareSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()


def read_catalog(path: Path) -> OwnCatalog:
    """The devices or models of a file, by its content. Raises ValueError with one sentence, OSError as open does."""
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"{path.name} is larger than {MOST_BYTES:,} bytes, which no catalog is.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not text in UTF-8.") from None
    name = path.parent.name if path.name == "config.json" else path.stem
    return parse_catalog(text, name or "your model")


def parse_catalog(text: str, name: str) -> OwnCatalog:
    """As ``read_catalog``, from text; ``name`` is what a config.json's model is called."""
    if not text.lstrip().startswith(("{", "[")):
        return _of_csv(text)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("This is neither valid JSON nor CSV with the catalog's columns.") from None
    if isinstance(content, Mapping) and ("model_type" in content or "architectures" in content):
        return OwnCatalog(models=(model_from_config(content, name),))
    if not isinstance(content, Mapping) or not content.keys() & {"devices", "models"}:
        raise ValueError('A JSON catalog is {"devices": [...], "models": [...]}, or one model\'s config.json.')
    return OwnCatalog(
        devices=_rows(content.get("devices", ()), device_from_fields, "device"),
        models=_rows(content.get("models", ()), model_from_fields, "model"),
    )


def device_from_fields(fields: Mapping[str, object]) -> HardwareSpec:
    """A device from a form or a row; numbers or their text, by the columns of hardware.csv.

    Needed: name, memory_GiB and bandwidth_GBps; without a compute rate no prefill can be timed.
    Raises ValueError with one sentence.
    """
    row = {"name": _name(fields), **_words(fields, _DEVICE_WORDS), **_OWN}
    for column, (unit, needed, most) in _DEVICE_RATES.items():
        number = _number(fields.get(column))
        if number is None and needed:
            raise ValueError(f"{row['name']} needs {column}, in {unit}.")
        row[column] = "" if number is None else repr(check_rate(f"{column} of {row['name']}", number, unit, most))
    if row["kind"] not in {"gpu", "cpu", "tpu", "apu"}:
        raise ValueError(f"{row['name']} must be a gpu, cpu, tpu or apu, not {row['kind']!r}.")
    row["year"] = row["year"] if row["year"].isdecimal() else ""
    return device_of_row(row)


def model_from_fields(fields: Mapping[str, object]) -> ModelSpec:
    """A model from a form or a row, by the columns of models.csv; head_dim defaults to hidden / n_heads.

    Raises ValueError with one sentence for what is absent, no whole number, or does not go together.
    """
    row = {"name": _name(fields), **_words(fields, _MODEL_WORDS), **_OWN}
    for column in _MODEL_COUNTS:
        if _number(fields.get(column)) is None:
            raise ValueError(f"{row['name']} needs {column}.")
    for column in (*_MODEL_COUNTS, *_MODEL_OPTIONAL):
        number = _number(fields.get(column))
        zero = number is None or (number == 0 and column in _MAY_BE_ZERO)
        row[column] = "" if zero else str(check_count(f"{column} of {row['name']}", number))
    if not row["head_dim"]:
        row["head_dim"] = str(max(1, int(row["hidden"]) // int(row["n_heads"])))
    _need_together(row, ("experts", "experts_per_token", "expert_intermediate"))
    _need_together(row, ("latent_kv_rank", "latent_nope_dim", "latent_rope_dim", "latent_value_dim"))
    _need_together(row, ("window_tokens", "windowed_layers"))
    spec = model_of_row(row)
    _check_shape(spec)
    return spec


def _check_shape(spec: ModelSpec) -> None:
    if spec.family not in FAMILIES:
        raise ValueError(f"{spec.name}: the family {spec.family!r} is not known; known are {', '.join(FAMILIES)}.")
    if spec.n_heads % spec.n_kv_heads:
        raise ValueError(f"{spec.name}: {spec.n_heads} attention heads cannot share {spec.n_kv_heads} KV heads evenly.")
    if spec.windowed_layers > spec.n_layers:
        raise ValueError(f"{spec.name} has {spec.n_layers} layers, of which {spec.windowed_layers} cannot be windowed.")
    experts = spec.experts
    if experts and experts.per_token > experts.count:
        raise ValueError(f"{spec.name} cannot send a token to {experts.per_token} of {experts.count} experts.")
    if experts and experts.first_dense_layers >= spec.n_layers:
        raise ValueError(f"{spec.name} has {spec.n_layers} layers; {experts.first_dense_layers} cannot be dense.")


def _of_csv(text: str) -> OwnCatalog:
    reader = csv.DictReader(text.splitlines())
    columns = set(reader.fieldnames or ())
    if {"name", "bandwidth_GBps"} <= columns:
        return OwnCatalog(devices=_rows(list(reader), device_from_fields, "device"))
    if {"name", "n_layers", "hidden"} <= columns:
        return OwnCatalog(models=_rows(list(reader), model_from_fields, "model"))
    raise ValueError(
        "A CSV catalog begins with its columns: name, memory_GiB, bandwidth_GBps, or name, n_layers, hidden."
    )


def _rows(rows: object, make: Callable[[Mapping[str, object]], S], what: str) -> tuple[S, ...]:
    if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
        raise ValueError(f"The {what}s must be a list of rows.")
    found: list[S] = []
    for n, row in enumerate(rows, 1):
        if n > MOST_ROWS:
            raise ValueError(f"A catalog holds at most {MOST_ROWS} {what}s.")
        if not isinstance(row, Mapping):
            raise ValueError(f"Row {n} of the {what}s has no named columns.")
        found.append(make(row))
    if len({spec.name for spec in found}) < len(found):
        raise ValueError(f"Two {what}s have the same name.")
    return tuple(found)


def _name(fields: Mapping[str, object]) -> str:
    name = str(fields.get("name") or "").strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"Every row needs a name of 1 to {LONGEST_NAME} printable characters.")
    return name


def _words(fields: Mapping[str, object], defaults: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for column, default in defaults.items():
        value = fields.get(column)
        said = "yes" if value is True else "no" if value is False else str(value or "").strip()
        found[column] = said[:LONGEST_NAME] or default
    return found


def _number(value: object) -> object:
    """A number from a number or its text; text that is none stays as it is, for the check that refuses it."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if re.fullmatch(r"[-+]?\d+", text) and len(text) < 20:
        return int(text)
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _need_together(row: Mapping[str, str], columns: tuple[str, ...]) -> None:
    given = [column for column in columns if row[column]]
    absent = [column for column in columns if not row[column]]
    if given and absent:
        raise ValueError(f"{row['name']} says {given[0]} and so needs {absent[0]}.")


def fields_of_model(spec: ModelSpec) -> dict[str, object]:
    """The row that ``model_from_fields`` makes a model of again; what is absent or a default is left out."""
    experts, latent = spec.experts, spec.latent
    fields: dict[str, object] = {"name": spec.name, **{column: getattr(spec, column) for column in _MODEL_COUNTS}}
    fields |= {"family": spec.family, "head_dim": spec.head_dim, "tied": "yes" if spec.tied else "no"}
    if spec.qkv_bias:
        fields["qkv_bias"] = "yes"
    if spec.windowed_layers:
        fields |= {"window_tokens": spec.window_tokens, "windowed_layers": spec.windowed_layers}
    if experts:
        fields |= {"experts": experts.count, "experts_per_token": experts.per_token}
        fields |= {"expert_intermediate": experts.intermediate, "shared_experts": experts.shared}
        fields["first_dense_layers"] = experts.first_dense_layers
    if latent:
        fields |= {"latent_query_rank": latent.query_rank, "latent_kv_rank": latent.kv_rank}
        fields |= {"latent_nope_dim": latent.nope_dim, "latent_rope_dim": latent.rope_dim}
        fields["latent_value_dim"] = latent.value_dim
    return {column: value for column, value in fields.items() if value not in (None, 0)}
