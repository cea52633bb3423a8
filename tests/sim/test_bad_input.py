"""Whatever a person types: one sentence that says what to change, no traceback, no NaN, nothing clamped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.catalog_file import device_from_fields, model_from_fields, parse_catalog, read_catalog
from sim.checks import check_count, check_rate, context_warning
from sim.config_json import model_from_config
from sim.hardware import find_hardware
from sim.memory import memory_needed
from sim.models import find_model
from sim.shape import check_tensor_parallel

CASE = json.loads((Path(__file__).parents[1] / "cases" / "e_bad_inputs.json").read_text(encoding="utf-8"))
LLAMA = find_model("Llama-3-8B")
DEVICE = {"name": "mine", "memory_GiB": 24, "bandwidth_GBps": 1000, "fp16_dense_TFLOPS": 100}
MODEL = {
    "name": "mine",
    "n_layers": 2,
    "hidden": 64,
    "n_heads": 4,
    "n_kv_heads": 2,
    "intermediate": 128,
    "vocab": 100,
    "max_context_tokens": 512,
}
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}


def said(error: pytest.ExceptionInfo[Exception]) -> str:
    """The message, which must be one sentence."""
    text = str(error.value)
    assert text.endswith(".") and "\n" not in text and "Traceback" not in text and len(text) < 400
    return text


@pytest.mark.parametrize("case", CASE["inputs"], ids=str)
def test_the_cases_inputs_are_answered_with_a_sentence(case: dict[str, Any]) -> None:
    if "model_max" in case:
        small = model_from_fields({**MODEL, "max_context_tokens": case["model_max"]})
        warning = context_warning(small, case["context"])
        assert warning is not None and "8,192" in warning and "200,000" in warning
        return
    with pytest.raises(ValueError) as error:
        if "tensor_parallel" in case:
            check_tensor_parallel(LLAMA, case["tensor_parallel"])
        elif case.keys() & {"bandwidth", "tflops", "memory"}:
            column = {"bandwidth": "bandwidth_GBps", "tflops": "fp16_dense_TFLOPS", "memory": "memory_GiB"}
            device_from_fields({**DEVICE, **{column[k]: v for k, v in case.items()}})
        else:
            memory_needed(LLAMA, 16, 2, case.get("context", 1), case.get("batch", 1))
    assert said(error)


ODD = st.one_of(st.integers(max_value=0), st.floats(), st.text(max_size=9), st.none(), st.booleans(), st.just(10**30))


@given(ODD)
@settings(max_examples=150, deadline=None)
def test_anything_but_a_count_is_refused(value: object) -> None:
    with pytest.raises(ValueError) as error:
        check_count("The batch", value)
    assert "The batch" in said(error)


@given(st.one_of(ODD, st.just(float("nan")), st.just(float("inf"))))
@settings(max_examples=150, deadline=None)
def test_a_rate_is_finite_and_positive_or_refused(value: object) -> None:
    try:
        rate = check_rate("The bandwidth", value, "GB/s")
    except ValueError as error:
        assert "GB/s" in str(error)
    else:
        assert 0 < rate <= 1e9


def test_the_context_of_a_model_is_no_limit_but_a_warning() -> None:
    assert context_warning(LLAMA, 8192) is None
    assert context_warning(LLAMA, 8193)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"bandwidth_GBps": None}, "bandwidth_GBps"),
        ({"bandwidth_GBps": ""}, "bandwidth_GBps"),
        ({"bandwidth_GBps": "-1"}, "bandwidth_GBps"),
        ({"bandwidth_GBps": "fast"}, "fast"),
        ({"bandwidth_GBps": 1e12}, "GB/s"),
        ({"memory_GiB": "nan"}, "memory_GiB"),
        ({"fp16_dense_TFLOPS": 0}, "fp16_dense_TFLOPS"),
        ({"kind": "toaster"}, "toaster"),
        ({"name": ""}, "name"),
        ({"name": "x" * 200}, "name"),
        ({"name": "a\nb"}, "name"),
    ],
)
def test_a_wrong_device_says_which_field(change: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError) as error:
        device_from_fields({**DEVICE, **change})
    assert word in said(error)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n_layers": 0}, "n_layers"),
        ({"n_layers": 2.5}, "n_layers"),
        ({"hidden": None}, "hidden"),
        ({"vocab": 10**15}, "vocab"),
        ({"n_kv_heads": 3}, "KV heads"),
        ({"experts": 8}, "experts_per_token"),
        ({"experts": 2, "experts_per_token": 3, "expert_intermediate": 8}, "3 of 2"),
        ({"experts": 2, "experts_per_token": 1, "expert_intermediate": 8, "first_dense_layers": 2}, "dense"),
        ({"window_tokens": 8, "windowed_layers": 3}, "windowed"),
        ({"window_tokens": 8}, "windowed_layers"),
        ({"latent_kv_rank": 8}, "latent"),
        ({"family": "rwkv"}, "rwkv"),
    ],
)
def test_a_wrong_model_says_which_field(change: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError) as error:
        model_from_fields({**MODEL, **change})
    assert word in said(error)


@pytest.mark.parametrize("kind", ["mamba", "bert", "rwkv", None, 7, "gemma3"])
def test_an_unknown_architecture_is_one_sentence(kind: object) -> None:
    with pytest.raises(ValueError) as error:
        model_from_config({**CONFIG, "model_type": kind}, "mine")
    assert "known are llama" in said(error)


@pytest.mark.parametrize("key", [k for k in CONFIG if k != "model_type"])
@pytest.mark.parametrize("value", ["absent", 0, -1, 2.5, "many", float("nan"), None])
def test_a_config_with_a_wrong_field_names_it(key: str, value: object) -> None:
    config = {**CONFIG, key: value}
    if value == "absent":
        del config[key]
    with pytest.raises(ValueError) as error:
        model_from_config(config, "mine")
    assert key in said(error)


@given(st.dictionaries(st.sampled_from([*CONFIG, "head_dim", "num_key_value_heads"]), ODD))
@settings(max_examples=100, deadline=None)
def test_no_config_ends_in_a_traceback(change: dict[str, object]) -> None:
    try:
        spec = model_from_config({**CONFIG, **change}, "mine")
    except ValueError:
        return
    assert spec.n_layers > 0 and spec.head_dim > 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[1]", "{}", '{"devices": 3}', '{"models": [4]}', "a,b\n1,2", "\0", "{" * 5000]
)
def test_a_file_that_is_no_catalog_says_what_one_is(text: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_catalog(text, "mine")
    assert said(error)


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"name,bandwidth_GBps\n" + b"x" * 1_000_001])
def test_a_file_that_is_no_text_or_too_large(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "mine.csv").write_bytes(raw)
    with pytest.raises(ValueError) as error:
        read_catalog(tmp_path / "mine.csv")
    assert "mine.csv" in said(error)


@pytest.mark.parametrize("name", ["", "   ", "H100", "rtx 4O9O", "💥", "a" * 10_000, "../../etc/passwd", "nan"])
def test_an_unknown_name_lists_the_nearest(name: str) -> None:
    for find in (find_hardware, find_model):
        with pytest.raises(LookupError) as error:
            find(name)
        assert "nearest names" in str(error.value) or "could be any" in str(error.value)
        assert len(str(error.value)) < 600
