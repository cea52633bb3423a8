"""Scoring: targets are met on unseen devices, nothing seen passes for unseen, and bad rows are told, not crashed on."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from sim.__main__ import main
from sim.calibrate import MEASURED
from sim.efficiency import calibration
from sim.observations import Skipped, observe, read_rows
from sim.score import Score, score_file, score_rows, table

KEYS = {"n", "skipped", "median_abs_rel_err", "p90_abs_rel_err", "one_constant_median"}
ROW = {
    "source": "made up",
    "hardware": "RTX 4090",
    "n_devices": "1",
    "parallel": "none",
    "engine": "llama.cpp CUDA",
    "model": "Llama-2-7b-hf",
    "weight_format": "Q4_0",
    "kv_format": "fp16",
    "weights_GB": "",
    "batch": "1",
    "prompt_len": "0",
    "gen_len": "128",
    "metric": "decode_tok_s",
    "value": "180",
    "value_basis": "total",
    "reliability": "A",
    "notes": "",
}


@pytest.fixture(scope="module")
def shipped() -> dict[str, Score]:
    return {name: score_file(MEASURED / f"{name}.csv") for name in ("measured", "batching", "speculation")}


@pytest.mark.parametrize(
    ("file", "key", "median", "p90", "n"),
    [
        ("measured", "decode_tok_s", 0.09, 0.25, 350),
        ("measured", "prefill_tok_s", 0.20, 0.50, 300),
        ("batching", "batching", 0.15, None, 180),
        ("speculation", "speculation", 0.15, None, 90),
    ],
)
def test_targets_are_met_on_devices_that_were_left_out(
    shipped: dict[str, Score], file: str, key: str, median: float, p90: float | None, n: int
) -> None:
    found = shipped[file].to_json()[key]
    assert found["n"] >= n
    assert found["median_abs_rel_err"] <= median
    assert p90 is None or found["p90_abs_rel_err"] <= p90
    assert found["median_abs_rel_err"] < found["one_constant_median"]


def test_the_json_has_the_four_metrics_and_their_figures(shipped: dict[str, Score]) -> None:
    found = shipped["measured"].to_json()
    assert list(found) == ["decode_tok_s", "prefill_tok_s", "batching", "speculation"]
    assert all(set(figures) == KEYS for figures in found.values())
    assert found["speculation"]["n"] == 0 and found["speculation"]["median_abs_rel_err"] is None
    json.dumps(found, allow_nan=False)


def test_every_row_is_scored_or_skipped_with_a_reason(shipped: dict[str, Score]) -> None:
    for name, score in shipped.items():
        skipped = sum(sum(by.values()) for by in score.skipped.values())
        assert len(score.rows) + skipped == len(read_rows(MEASURED / f"{name}.csv"))
    assert shipped["measured"].skipped["decode"]["reliability C"] == 12


def test_a_row_that_was_fitted_is_predicted_without_its_device_and_another_with_all() -> None:
    fitted = next(
        r
        for r in read_rows(MEASURED / "measured.csv")
        if r["hardware"] == "A100 SXM4 80GB" and r["reliability"] == "A" and r["metric"] == "decode_tok_s"
    )
    foreign = dict(fitted) | {"value": str(float(fitted["value"]) * 1.01)}
    constants = calibration()
    for row, values in ((fitted, constants.without["A100 SXM4 80GB"]), (foreign, constants.values)):
        seen = observe(row)
        expected = seen.seconds / seen.predicted_s(values) - 1
        assert score_rows([row], "x").rows[0].error == pytest.approx(expected)


def test_a_wrong_value_is_a_large_error() -> None:
    """A score that cannot tell right from wrong would be worth nothing."""
    right, wrong = (score_rows([ROW | {"value": v}], "x").rows[0].error for v in ("180", "90"))
    assert abs(right) < 0.15 and wrong == pytest.approx(2 * (1 + right) - 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reliability": "C"}, "reliability C"),
        ({"hardware": "RTX 9999"}, "device not in the catalog"),
        ({"hardware": "RTX 4070 Laptop"}, "device not in the catalog"),
        ({"hardware": "RTX 4090 48GB"}, "device not in the catalog"),
        ({"model": "secret-1T"}, "model not in the catalog"),
        ({"weight_format": "Q99"}, "weight format not known"),
        ({"kv_format": "nf7"}, "KV format not known"),
        ({"value": "nan"}, "no value"),
        ({"value": "-3"}, "no value"),
        ({"batch": "max"}, "batch not a number"),
        ({"batch": "8"}, "batch above 1 outside a curve"),
        ({"metric": "joules"}, "metric joules"),
        ({"metric": "ttft_ms"}, "a time to the first token, not a rate"),
        ({"value_basis": "unclear"}, "basis of the value unclear"),
        ({"parallel": "cpu-offload", "n_devices": "1"}, "weights partly in host memory"),
        ({"metric": "prefill_tok_s", "prompt_len": "ShareGPT"}, "prompt length not a number"),
        ({"n_devices": "3", "parallel": "TP"}, "the devices cannot share the model's heads"),
    ],
)
def test_what_cannot_be_predicted_is_skipped_with_its_reason(change: dict[str, str], reason: str) -> None:
    found = score_rows([ROW | change], "x")
    assert not found.rows
    assert [r for by in found.skipped.values() for r in by] == [reason]


def test_a_size_in_a_devices_name_may_be_the_one_the_catalog_has() -> None:
    assert observe(ROW | {"hardware": "RTX 4000 Ada 20GB"}).device == "RTX 4000 Ada"
    with pytest.raises(Skipped):
        observe(ROW | {"hardware": "RTX 4000 Ada 48GB"})


@pytest.mark.parametrize("change", [{"batch": "0"}, {"batch": "-1"}, {"prompt_len": "-5"}, {"prompt_len": "inf"}])
def test_impossible_counts_end_no_score(change: dict[str, str]) -> None:
    found = score_rows([ROW | {"metric": "prefill_tok_s", "prompt_len": "512"} | change, ROW], "x")
    assert len(found.rows) == 1 and sum(found.skipped["prefill"].values()) == 1


def test_a_file_of_something_else_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bills = tmp_path / "bills.csv"
    bills.write_text("month,amount\njan,3\n", encoding="utf-8")
    empty = tmp_path / "empty.csv"
    empty.write_text("hardware,engine\n", encoding="utf-8")
    image = tmp_path / "image.csv"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    for path, said in ((bills, "cannot be scored"), (empty, "no rows"), (image, "UTF-8"), (tmp_path / "no", "No such")):
        assert main(["score", str(path)]) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1 and said in lines[0]


def test_the_command_prints_a_table_or_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ROW)
        writer.writeheader()
        writer.writerow(ROW)
    assert main(["score", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decode_tok_s"]["n"] == 1
    assert main(["score", str(path)]) == 0
    assert "decode_tok_s" in capsys.readouterr().out
    assert "skipped: reliability C" in table(score_rows([ROW, ROW | {"reliability": "C"}], "x"))
