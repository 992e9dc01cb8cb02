"""Every log of the corpus: exact where an adapter exists, a clear refusal where none does yet."""

import json
from pathlib import Path

import pytest

from trainflow_tui.errors import DamagedError
from trainflow_tui.monitoring.logs.read import read_log
from trainflow_tui.monitoring.logs.records import log_read_json

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "logs"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of logs is not at {CORPUS}")

READ_EXACTLY = [
    "copytruncate_nul_prefix.log",
    "llamafactory_trainer_log.jsonl",
    "megatron_deepspeed_no_loss_gradnorm_nan.log",
    "megatron_deepspeed_seconds.log",
    "megatron_deepspeed_tgs.log",
    "megatron_lm_2022_fp16_skipped.log",
    "megatron_lm_2024_moe.log",
    "megatron_lm_2026_micros_nan.log",
    "megatron_progress.txt",
    "megatron_restart_rewind.log",
    "nccl_watchdog.log",
    "primus_ansi_pairs.log",
]
NOT_YET = [
    "areal_stats_table.log",
    "deepspeed_engine.log",
    "hf_trainer_tqdm_cr.log",
    "lightning_metrics.csv",
    "llmc_nan.log",
    "nanogpt_nan.log",
    "nemo2_console.log",
    "paddle_family.log",
    "slime_perf.log",
    "tb_attempt1.events.out.tfevents.1767261600.host.1.0",
    "tb_corrupt.events.out.tfevents.1767262600.host.4.0",
    "torchtitan_all_ranks_duplicated.log",
    "torchtitan_ansi_nan_validate.log",
    "torchtitan_rank0.log",
    "verl_console.log",
    "wandb_offline_run.wandb",
]
NOT_ASKED = {"kind", "origin", "rules", "derived"}


def differences(expected, given, place=""):
    """Where `given` lacks or differs from what is expected; lists must have equal length and order."""
    if isinstance(expected, dict):
        if not isinstance(given, dict):
            return [f"{place}: {given!r} is no object"]
        found = []
        for key, value in expected.items():
            found += differences(value, given[key], f"{place}/{key}") if key in given else [f"{place}/{key} is missing"]
        return found
    if isinstance(expected, list):
        if not isinstance(given, list) or len(given) != len(expected):
            return [f"{place}: {given!r} instead of {expected!r}"]
        return [
            line
            for i, (a, b) in enumerate(zip(expected, given, strict=True))
            for line in differences(a, b, f"{place}/{i}")
        ]
    return (
        []
        if expected == given and type(expected is None) is type(given is None)
        else [f"{place}: {given!r} instead of {expected!r}"]
    )


def test_the_comparison_sees_a_difference_at_any_depth():
    expected = {"records": [{"step": 1, "losses": {"lm loss": 2.0}}]}
    assert differences(expected, {"records": [{"step": 1, "losses": {"lm loss": 2.0}, "more": 1}]}) == []
    assert differences(expected, {"records": [{"step": 1, "losses": {"lm loss": 2.1}}]})
    assert differences(expected, {"records": [{"step": 1}]})
    assert differences(expected, {"records": []})
    assert differences({"loss": None}, {"loss": 0})


@pytest.mark.parametrize("name", READ_EXACTLY)
def test_the_log_reads_as_expected(name):
    expected = json.loads((CORPUS / f"{name}.expected.json").read_text())
    given = json.loads(json.dumps(log_read_json(read_log(CORPUS / name)), allow_nan=False))
    assert given["schema"] == "log-read/1"
    assert differences({key: value for key, value in expected.items() if key not in NOT_ASKED}, given) == []
    assert given["rejected"] == expected.get("rejected", [])


@pytest.mark.parametrize("name", NOT_YET)
def test_a_format_without_adapter_is_refused_by_name(name):
    with pytest.raises(DamagedError) as refusal:
        read_log(CORPUS / name)
    assert refusal.value.code == "log-format-unknown"
    assert refusal.value.subject == name
    assert "megatron" in refusal.value.next_step


def test_a_decimal_comma_is_rejected_and_shown():
    read = read_log(CORPUS / "locale_decimal_comma.log")
    assert [(entry.line, entry.reason.partition(":")[0]) for entry in read.rejected] == [(1, "decimal comma")]
    assert [(record.line, record.step, record.loss) for record in read.records] == [(2, 20, 2.345)]
    assert read.records[0].values == {"lr": 0.0001, "tokens_per_s": 12345.6}


def test_every_file_of_the_corpus_is_in_one_of_the_lists():
    files = {path.name.removesuffix(".expected.json") for path in CORPUS.glob("*.expected.json")}
    others = {
        "locale_decimal_comma.log",
        "tb_attempt2.events.out.tfevents.1767262600.host.2.0",
        "tb_truncated.events.out.tfevents.1767262600.host.3.0",
    }
    assert files == {*READ_EXACTLY, *NOT_YET, *others}
