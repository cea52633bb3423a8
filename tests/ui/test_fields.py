"""The simulator's fields as text: what is taken, and one sentence at each field for what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.catalog_file import OwnCatalog, device_from_fields
from sim.claims import ledger
from ui.fields import DEFAULTS, RECORDING, count, resolve

NONE = OwnCatalog()
CASES = json.loads((Path(__file__).parent.parent / "cases" / "e_bad_inputs.json").read_text(encoding="utf-8"))
COUNTS = ("prompt", "new", "batch", "gpus")
BAD_COUNTS = (
    "0",
    "-5",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "",
    " ",
    "many",
    "1,5",
    "10" * 12,
    "0x10",
    "²",
    "true",
    "None",
)


def asked(**changed: str) -> dict[str, str]:
    return DEFAULTS | changed


def test_the_defaults_are_a_scenario() -> None:
    found = resolve(asked(), NONE)
    assert not found.problems
    assert found.scenario is not None and found.scenario.predict().memory.fits


@pytest.mark.parametrize("text", ["2667", " 2667 ", "2,667", "2 667", "2_667", "+2667"])
def test_whole_numbers_may_be_written_as_people_do(text: str) -> None:
    assert count("The prompt", text) == 2667


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("text", BAD_COUNTS)
def test_what_is_no_count_is_told_at_its_field_alone(name: str, text: str) -> None:
    found = resolve(asked(**{name: text}), NONE)
    assert found.scenario is None
    assert list(found.problems) == [name]
    assert found.problems[name].endswith(".")
    assert "must be a whole number" in found.problems[name]


@pytest.mark.parametrize("name", ["model", "device", "weights", "kv", "against"])
@pytest.mark.parametrize("text", ["no such thing", "<script>", "x" * 5000, "\0"])
def test_an_unknown_name_is_told_with_the_nearest(name: str, text: str) -> None:
    found = resolve(asked(**{name: text}), NONE)
    assert list(found.problems) == [name]
    assert len(found.problems[name]) < 500


@pytest.mark.parametrize("name", ["model", "device", "weights", "kv"])
def test_an_empty_name_is_told(name: str) -> None:
    assert name in resolve(asked(**{name: ""}), NONE).problems


def test_names_are_taken_as_people_write_them() -> None:
    found = resolve(asked(model="llama-3-70b", device="h100-sxm", weights="2.5bpw", kv="Q8_0", against="4090"), NONE)
    assert found.scenario is not None
    assert (found.scenario.spec.name, found.scenario.setting.hardware.name) == ("Meta-Llama-3-70B", "H100 SXM5 80GB")


@pytest.mark.parametrize("case", [c for c in CASES["inputs"] if "tensor_parallel" in c], ids=str)
def test_devices_that_cannot_share_the_heads_are_told_at_their_field(case: dict[str, int]) -> None:
    found = resolve(asked(gpus=str(case["tensor_parallel"])), NONE)
    assert list(found.problems) == ["gpus"]


def test_several_wrong_fields_are_all_told_at_once() -> None:
    found = resolve(asked(model="?", prompt="0", batch="-1", kv="x9"), NONE)
    assert set(found.problems) == {"model", "prompt", "batch", "kv"}


def test_a_device_without_rates_is_told_at_its_field() -> None:
    bare = device_from_fields({"name": "bare", "memory_GiB": 24, "bandwidth_GBps": 900})
    found = resolve(asked(device="bare"), OwnCatalog(devices=(bare,)))
    assert "No arithmetic rate of bare is known" in found.problems["device"]


def test_a_recording_beside_it_needs_no_device() -> None:
    assert not resolve(asked(against=f"{RECORDING}whatever"), NONE).problems


def test_the_conditions_of_every_claim_can_be_set() -> None:
    for claim in ledger():
        s = claim.setting
        fields = {"model": s.model, "device": s.hardware, "weights": s.weights, "batch": str(s.batch)}
        found = resolve(asked(**fields, prompt=str(s.prompt_tokens), new=str(s.new_tokens)), NONE)
        assert not found.problems, claim.id
