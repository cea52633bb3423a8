"""The front door: what is a model and what is not, which path it takes, and that one precision is held at a time."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models

from engine.catalog import embedded_model
from engine.families import UnsupportedModel, from_hugging_face
from engine.load import LoadedModel, open_model

pytestmark = pytest.mark.engine
CPU = torch.device("cpu")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
}


def opened(location: str | Path) -> LoadedModel:
    return open_model(location, lambda doing, share: None)


def save(directory: Path, model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    model.eval().save_pretrained(directory)
    words = models.WordLevel({f"w{i}": i for i in range(128)}, unk_token="w0")
    Tokenizer(words).save(str(directory / "tokenizer.json"))
    return model


def tiny_llama() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**{k: v for k, v in LLAMA.items() if k != "model_type"})
    )


def tiny_gpt2() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2
    )
    return transformers.GPT2LMHeadModel(config)


def test_the_embedded_model_opens() -> None:
    path = embedded_model()
    assert path is not None
    model = opened(path)
    assert (model.spec.n_layers, model.spec.vocab) == (30, 49152)
    assert model.chat_template is not None


@pytest.mark.parametrize("location", ["/no/such/model.gguf", "no such model", "../x", "https://example.org/model"])
def test_a_location_that_is_not_there_is_one_sentence(location: str) -> None:
    with pytest.raises(ValueError, match="There is no model at") as raised:
        opened(location)
    assert "\n" not in str(raised.value)


def test_files_and_directories_that_are_not_models(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a model", "utf-8")
    with pytest.raises(ValueError, match=r"notes\.txt is not a GGUF file"):
        opened(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match=r"no config\.json"):
        opened(tmp_path)
    (tmp_path / "config.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match="not valid JSON"):
        opened(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04pickle")
    with pytest.raises(ValueError, match="pickled weights are never loaded"):
        opened(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="damaged or cut short"):
        opened(tmp_path)


def test_an_index_cannot_name_files_outside(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    index = {"weight_map": {"model.norm.weight": "../secret.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    with pytest.raises(ValueError, match="outside of it"):
        opened(tmp_path)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    model = save(tmp_path, tiny_llama())
    state = {k: v for k, v in model.state_dict().items() if "layers.1.mlp.up_proj" not in k}
    from safetensors.torch import save_file

    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"has no tensor model\.layers\.1\.mlp\.up_proj\.weight"):
        opened(tmp_path).build("fp32", CPU, 64)


def test_a_precision_switch_frees_the_previous_one_even_when_its_backend_is_kept(tmp_path: Path) -> None:
    save(tmp_path, tiny_llama())
    model = opened(tmp_path)
    kept = model.build("fp32", CPU, 64)
    watched = [weakref.ref(kept._decoder), weakref.ref(kept._cache)]  # type: ignore[attr-defined]
    model.build("bf16", CPU, 64)
    gc.collect()
    assert [ref() for ref in watched] == [None, None]
    assert kept.precision == "fp32"


def test_progress_runs_to_the_end(tmp_path: Path) -> None:
    save(tmp_path, tiny_llama())
    shares: list[float | None] = []
    opened(tmp_path).build("fp32", CPU, 64, progress=lambda doing, share: shares.append(share))
    known = [share for share in shares if share is not None]
    assert known == sorted(known) and known[-1] == 1.0


def test_unknown_precision_is_refused(tmp_path: Path) -> None:
    save(tmp_path, tiny_llama())
    with pytest.raises(ValueError, match="fp8 is not available"):
        opened(tmp_path).build("fp8", CPU, 64)


def test_a_device_without_quantised_products_says_so(tmp_path: Path) -> None:
    save(tmp_path, tiny_llama())
    supports = {s.precision: s for s in opened(tmp_path).precisions(torch.device("mps"))}
    assert [p for p, s in supports.items() if s.available] == ["fp32", "bf16"]
    assert supports["int4"].reason == "8-bit and 4-bit products are there for CPUs and CUDA only."


def test_a_hub_id_that_cannot_be_fetched_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="'nobody/nothing-at-all' could not be fetched from the hub") as raised:
        opened("nobody/nothing-at-all")
    assert "\n" not in str(raised.value)


def test_other_models_take_the_generic_path(tmp_path: Path) -> None:
    reference = save(tmp_path, tiny_gpt2())
    model = opened(tmp_path)
    offered = {s.precision: s for s in model.precisions(CPU)}
    assert [p for p, s in offered.items() if s.available] == ["fp32", "bf16"]
    assert offered["int4"].reason is not None

    backend = model.build("fp32", CPU, 64)
    ids = torch.randint(0, 128, (20,), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = reference(ids[None]).logits[0]
    for _ in range(2):  # a second run starts afresh
        backend.reset()
        backend.prefill(ids[:10], 0)
        torch.testing.assert_close(backend.prefill(ids[10:15], 10), expected[14], atol=1e-4, rtol=0)
        for position in range(15, 20):
            found = backend.decode(int(ids[position]), position)
            torch.testing.assert_close(found, expected[position], atol=1e-4, rtol=0)
    assert (backend.path, model.spec.family, model.spec.intermediate) == ("generic path", "other", 256)
    with pytest.raises(ValueError, match="cannot go on at 40"):
        backend.decode(1, 40)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": "gpt2"}, "no native forward"),
        ({"hidden_act": "gelu"}, "activation 'gelu'"),
        ({"model_type": "mistral", "sliding_window": 128}, "window of 128"),
        ({"model_type": "qwen2", "sliding_window": 128, "use_sliding_window": True}, "window of 128"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "'yarn'"),
        ({"partial_rotary_factor": 0.5}, "a part of each head"),
        ({"quantization_config": {"quant_method": "gptq"}}, "stored quantised"),
    ],
)
def test_configs_that_the_native_forward_would_run_wrong(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnsupportedModel, match=sentence):
        from_hugging_face(LLAMA | changes, "it", has_head=True)


def test_configs_that_only_look_unusual_are_taken() -> None:
    assert (
        from_hugging_face(LLAMA | {"model_type": "mistral", "sliding_window": 512}, "it", has_head=True).spec.tied
        is False
    )
    window = {"model_type": "qwen2", "sliding_window": 128, "use_sliding_window": False}
    assert from_hugging_face(LLAMA | window, "it", has_head=False).spec.tied is True
    old = from_hugging_face(
        LLAMA | {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}}, "it", has_head=True
    )
    assert old.rope_theta == 5e5 and old.rope_scaling is not None and old.rope_scaling.factor == 2.0
    with pytest.raises(ValueError, match="lacks 'hidden_size'"):
        from_hugging_face({k: v for k, v in LLAMA.items() if k != "hidden_size"}, "it", has_head=True)
