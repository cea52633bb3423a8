"""Facts measured once about this machine, kept on disk between starts: one small JSON file for each set of conditions.

A file counts only when it is whole, of this version, and made under the very same conditions; anything else is measured
again. Writing is whole or not at all, and a folder that cannot be written costs a measurement, never a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CACHE_VERSION = 1


def cache_folder() -> Path:
    """SILICONSCOPE_CACHE, else the user's cache folder."""
    given = os.environ.get("SILICONSCOPE_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "siliconscope"


class Remembered:
    """``kind`` names what is kept; ``conditions`` are JSON values that a fact depends on."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind

    def load(self, conditions: Mapping[str, Any]) -> Any:
        """The facts stored under these conditions, or None."""
        try:
            payload = json.loads(self._path(conditions).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        expected = _plain({"version": CACHE_VERSION, "conditions": conditions})
        if not isinstance(payload, dict) or {k: payload.get(k) for k in expected} != expected:
            return None
        return payload.get("facts")

    def store(self, conditions: Mapping[str, Any], facts: Any) -> None:
        payload = {"version": CACHE_VERSION, "conditions": conditions, "facts": facts}
        path = self._path(conditions)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, suffix=".part", delete=False) as file:
                json.dump(payload, file)
            os.replace(file.name, path)
        except OSError:
            return

    def _path(self, conditions: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()[:16]
        return self._folder / f"{self._kind}-{digest}.json"


def _plain(value: Any) -> Any:
    """As JSON gives it back: tuples become lists."""
    return json.loads(json.dumps(value))
