"""The static-shape decode step, which a CUDA graph captures, against the dynamic path: uncaptured, on a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models

from engine.cuda_graph import bucket_lengths
from engine.kernels import CPU_KERNELS
from engine.load import LoadedModel, open_model
from engine.native import Assembly, NativeBackend, NativeRecipe

pytestmark = pytest.mark.engine
CPU = torch.device("cpu")


def tiny_model(directory: Path) -> LoadedModel:
    config = transformers.Qwen3Config(
        vocab_size=160,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        initializer_range=0.2,
        max_position_embeddings=1024,
    )
    torch.manual_seed(0)
    transformers.Qwen3ForCausalLM(config).save_pretrained(directory)
    vocabulary = {f"w{i}": i for i in range(160)}
    Tokenizer(models.WordLevel(vocabulary, unk_token="w0")).save(str(directory / "tokenizer.json"))
    return open_model(directory, lambda doing, share: None)


def backend(model: LoadedModel, recipe: NativeRecipe, cuda_graph: bool | None) -> NativeBackend:
    assembly = Assembly(recipe.config, recipe.source, "fp32", CPU, CPU_KERNELS)
    decoder = assembly.decoder(600, lambda doing, share: None)
    built = NativeBackend(decoder, assembly.embedding(), "fp32", CPU, 600, options={}, cuda_graph=cuda_graph)
    built._cache.data.normal_(std=10)  # stale numbers in the cache must be masked off, not merely be zero
    return built


def test_buckets_double_up_to_the_capacity() -> None:
    assert bucket_lengths(2000) == [256, 512, 1024, 2000]
    assert bucket_lengths(256) == [256]
    assert bucket_lengths(100) == [100]


def test_static_step_equals_the_dynamic_path_across_buckets(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    recipe = model._recipe
    assert isinstance(recipe, NativeRecipe)
    dynamic, static = backend(model, recipe, None), backend(model, recipe, False)
    ids = torch.randint(0, 160, (520,), generator=torch.Generator().manual_seed(1))
    for start, end in ((0, 250), (262, 508)):
        if start:
            ids_before = ids[:start]
            dynamic.prefill(ids_before, 0), static.prefill(ids_before, 0)
        dynamic.prefill(ids[start:end], start), static.prefill(ids[start:end], start)
        for position in range(end, end + 10):  # 250 to 259 and 508 to 517 cross a bucket's end
            token = int(ids[position])
            expected = dynamic.decode(token, position).clone()
            torch.testing.assert_close(static.decode(token, position), expected, atol=1e-4, rtol=0)
