"""Predictions: the figures and their words, what does not fit, bad input, and the same run as a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.__main__ import main
from sim.costs import step_cost
from sim.engines import Engine, Setting, usual_engine
from sim.formats import find_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.playback import play
from sim.predict import predict
from sim.schedule import prefill_in_order, prefill_passes
from sim.weights import weight_bytes
from telemetry.summary import summarise
from telemetry.trace import read_trace

STORY = ["--model", "llama-3-70b", "--hardware", "h100-sxm", "--weights", "int8"]
STORY += ["--prompt-tokens", "2667", "--new-tokens", "67", "--batch", "1"]
KEYS = [
    *("ttft_s", "tpot_s", "prefill_tok_s", "decode_tok_s", "bytes_per_token", "kv_bytes_per_token", "intensity"),
    *("bound", "mfu", "mbu", "fits", "memory_needed_bytes", "memory_available_bytes", "interval"),
]
LLAMA = find_model("Llama-3-8B")
RTX_4090 = find_hardware("RTX 4090")


def setting(hardware: str = "RTX 4090", weights: str = "Q4_K_M", ranks: int = 1, stages: int = 1) -> Setting:
    device, form = find_hardware(hardware), find_format(weights)
    return Setting(device, usual_engine(device, form), form, ranks, stages)


def test_the_storys_run_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *STORY, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == KEYS
    assert found["bytes_per_token"]["weights"] == pytest.approx(69.5e9, rel=0.005)  # gpt-fast measured 69.1 GB
    assert found["kv_bytes_per_token"] == 327680
    assert found["bound"] == {"prefill": "compute", "decode": "memory"}
    assert found["decode_tok_s"] == pytest.approx(1 / found["tpot_s"])
    assert 0.5 < found["mbu"] < 0.85 and 0.3 < found["mfu"] < 0.8
    assert found["fits"] is True
    for figure, (low, high) in found["interval"].items():
        assert low < found[figure] < high


def test_the_verdict_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *STORY]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Decode is memory-bound: 70.4 GB for each token.")
    assert "70.4 GB" in out and "GiB" in out and "[" in out


def test_mean_bytes_and_intensity_are_those_of_the_decode_steps() -> None:
    found = predict(LLAMA, setting(), 100, 3)
    weights = weight_bytes(LLAMA, find_format("Q4_K_M"))
    steps = [step_cost(LLAMA, [(1, 100 + i)], weights, 2.0, 2.0) for i in range(2)]
    assert found.bytes_per_token.kv_read == pytest.approx(sum(s.kv_read_bytes for s in steps) / 2)
    assert found.bytes_per_token.total == pytest.approx(sum(s.total_bytes for s in steps) / 2)
    assert found.decode_intensity == pytest.approx(sum(s.flops for s in steps) / sum(s.total_bytes for s in steps))


def test_ranks_are_counted_together() -> None:
    one, four = (predict(LLAMA, setting("H100 SXM5 80GB", "bf16", ranks=n), 512, 16) for n in (1, 4))
    assert four.bytes_per_token.weights == pytest.approx(one.bytes_per_token.weights, rel=0.001)
    assert four.kv_bytes_per_token == one.kv_bytes_per_token
    assert four.tpot_s is not None and one.tpot_s is not None and one.tpot_s / 4 < four.tpot_s < one.tpot_s
    assert four.memory.needed_bytes < one.memory.needed_bytes / 3


def test_a_layer_split_adds_memory_not_decode_speed() -> None:
    llama_70b = find_model("Llama-3-70B")
    assert predict(llama_70b, setting(), 512, 8).memory.fits is False
    two = predict(llama_70b, setting(stages=2), 512, 8)
    assert two.memory.fits is True and two.tpot_s is not None
    assert 1 / two.tpot_s == pytest.approx(19.06, rel=0.15)  # llama-bench, two RTX 4090, 1024 tokens


def test_what_does_not_fit_gets_no_speed_but_says_by_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--model", "llama-3-70b", "--hardware", "rtx-4090", "--weights", "int8"]
    assert main(["predict", *run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is False
    assert [found[k] for k in ("ttft_s", "tpot_s", "decode_tok_s", "mfu", "mbu")] == [None] * 5
    assert main(["predict", *run]) == 0
    assert "does not fit by 4" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batch", "0"], "The batch must be a whole number from 1"),
        (["--batch", "-1"], "The batch must be a whole number from 1"),
        (["--prompt-tokens", "0"], "The prompt must be a whole number from 1"),
        (["--prompt-tokens", "1000000000000"], "The prompt must be a whole number from 1"),
        (["--new-tokens", "-5"], "The answer must be a whole number from 1"),
        (["--tensor-parallel", "0"], "Tensor parallelism needs a whole number"),
        (["--tensor-parallel", "3"], "64 attention heads"),
        (["--model", "lama-3-70b"], "Meta-Llama-3-70B"),
        (["--hardware", "h100-smx"], "H100 SXM5 80GB"),
        (["--weights", "int7"], "the nearest names are"),
        (["--kv", "nf7"], "the nearest names are"),
        (["--catalog", "/no/such/file.csv"], "No such file"),
    ],
)
def test_bad_input_is_one_sentence_that_says_what_to_change(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["predict", *STORY, *arguments], ["trace", *STORY, *arguments, "--out", "/dev/null"]):
        assert main(command) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.strip().splitlines()) == 1 and said in captured.err


@pytest.mark.parametrize("value", ["1.5", "nan", "inf", "many", ""])
def test_no_whole_number_is_refused_by_the_field(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict", *STORY, "--batch", value])
    assert f"argument --batch: {value!r} is not a whole number" in capsys.readouterr().err


def test_beyond_the_models_context_there_is_a_warning_and_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *STORY, "--prompt-tokens", "9000"]) == 0
    captured = capsys.readouterr()
    assert "was made for 8,192 tokens" in captured.err and "Decode is" in captured.out


def test_a_device_of_ones_own_without_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = tmp_path / "mine.csv"
    catalog.write_text("name,memory_GiB,bandwidth_GBps,fp16_dense_TFLOPS,fp32_TFLOPS\nmine,96,3350,989,67\n")
    assert main(["predict", *STORY, "--hardware", "mine", "--catalog", str(catalog), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decode_tok_s"] > 10


def test_a_device_without_any_compute_rate_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = tmp_path / "mine.csv"
    catalog.write_text("name,memory_GiB,bandwidth_GBps\nmine,96,3350\n")
    assert main(["predict", *STORY, "--hardware", "mine", "--catalog", str(catalog)]) == 2
    assert "No arithmetic rate of mine is known" in capsys.readouterr().err


@pytest.mark.parametrize(("prompt", "batch", "chunk"), [(2667, 1, 512), (100, 7, 512), (512, 3, 512), (1, 600, 512)])
def test_passes_cover_every_token_of_every_prompt_once(prompt: int, batch: int, chunk: int) -> None:
    seen = [0] * batch
    for p in prefill_in_order(prompt, batch, chunk):
        assert p.rows * p.n_tokens <= max(chunk, p.n_tokens)
        for sequence in range(p.first, p.first + p.rows):
            assert seen[sequence] == p.context
            seen[sequence] += p.n_tokens
    assert seen == [prompt] * batch
    assert sum(p.count * p.rows * p.n_tokens for p in prefill_passes(prompt, batch, chunk)) == prompt * batch


@pytest.mark.parametrize("batch", [1, 3])
def test_the_trace_says_what_was_predicted(tmp_path: Path, batch: int, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "T.jsonl"
    run = ["--model", "llama-3-8b", "--hardware", "rtx-4090", "--weights", "q4_k_m"]
    run += ["--prompt-tokens", "1300", "--new-tokens", "20", "--batch", str(batch)]
    assert main(["trace", *run, "--out", str(out)]) == 0
    capsys.readouterr()
    trace = read_trace(out)
    assert (trace.ended_early, trace.notes) == (False, ())
    assert (trace.header.source, trace.header.text_withheld) == ("simulated", True)
    found = predict(LLAMA, setting(), 1300, 20, batch)
    last = summarise(trace)  # of the request whose prompt was read last, as the prediction is
    assert last.ttft_s == pytest.approx(found.ttft_s, abs=1e-6)
    assert last.tpot_s == pytest.approx(found.tpot_s, rel=1e-4)
    assert (last.n_prompt_tokens, last.n_new_tokens) == (1300, 20)
    if batch == 1:
        assert last.mfu.prefill == pytest.approx(found.mfu, rel=1e-4)
        assert last.mbu.decode == pytest.approx(found.mbu, rel=1e-4)


def test_an_answer_of_one_token_ends_with_the_prefill() -> None:
    played = play(LLAMA, setting(), 600, 1)
    assert [p.kind for p in played] == ["prefill", "prefill"]
    assert [p.yields_token for p in played] == [False, True]
    assert predict(LLAMA, setting(), 600, 1).ttft_s == pytest.approx(played[-1].t1_s)


def test_a_run_too_long_to_play_is_refused_and_a_long_answer_priced() -> None:
    with pytest.raises(ValueError, match="at most 50,000 passes"):
        play(LLAMA, setting(), 10, 60_000)
    long = predict(LLAMA, Setting(RTX_4090, Engine("llama.cpp", "cuda"), find_format("Q4_0")), 10, 50_000)
    middle = predict(LLAMA, Setting(RTX_4090, Engine("llama.cpp", "cuda"), find_format("Q4_0")), 25_000, 2)
    assert long.tpot_s == pytest.approx(middle.tpot_s, rel=0.01)
