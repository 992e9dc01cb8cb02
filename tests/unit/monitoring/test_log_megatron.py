import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.megatron import MegatronAdapter
from trainflow_tui.monitoring.logs.records import AuxRecord, LogEvent, MetricRecord, RejectedLine


def metric_line(step, *, total=100, loss="1.5E+00", clock="2026-01-01 10:00:00", elapsed="1000.0", grad="1.000"):
    return (
        f" [{clock}] iteration {step:8d}/{total:8d} | consumed samples: {step * 8:12d} | "
        f"elapsed time per iteration (ms): {elapsed} | learning rate: 1.000000E-04 | global batch size:     8 | "
        f"lm loss: {loss} | loss scale: 1.0 | grad norm: {grad} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def read(*lines, attempts=None):
    adapter = MegatronAdapter(attempts)
    return [item for number, line in enumerate(lines, start=1) for item in adapter.feed(number, line)]


def records(items):
    return [item for item in items if isinstance(item, MetricRecord)]


def events(items):
    return [(item.line, item.type, item.fields) for item in items if isinstance(item, LogEvent)]


def test_the_second_line_of_a_shape_reads_as_the_first():
    first, second = records(read(metric_line(5), metric_line(6)))
    assert msgspec.structs.replace(second, line=1, step=5, values={**second.values, "consumed_samples": 40}) == first


@settings(deadline=None)
@given(
    st.floats(min_value=0.05, max_value=9e6).map(lambda number: f"{number:.1f}"),
    st.integers(min_value=0, max_value=10**15),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:.6E}"),
)
def test_the_numbers_are_those_that_are_printed(elapsed, step, loss):
    for record in records(read(metric_line(0), metric_line(step, elapsed=elapsed, loss=loss)))[1:]:
        assert record.step == step
        assert record.loss == float(loss)
        assert record.values["step_time_s"] == float(f"{elapsed}e-3")
        assert record.values["consumed_samples"] == step * 8


def test_a_line_without_any_loss_has_no_loss_and_says_so():
    items = read(metric_line(5).replace("lm loss: 1.5E+00 | ", ""))
    assert records(items)[0].loss is None
    assert records(items)[0].losses == {}
    assert events(items) == [(1, "loss_missing", {})]


def test_an_auxiliary_loss_is_never_the_main_loss():
    line = metric_line(5).replace("lm loss:", "load_balancing_loss: 1.01E+00 | action loss:")
    record = records(read(line))[0]
    assert record.loss == 1.5
    assert record.losses == {"load_balancing_loss": 1.01, "action loss": 1.5}


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_nonfinite_number_is_kept_and_told(text):
    items = read(metric_line(4), metric_line(5, loss=text))
    assert str(records(items)[1].loss) == text
    assert events(items) == [(2, "non_finite", {"fields": ["lm loss"]})]


def test_a_gradient_of_exactly_zero_is_suspicious():
    assert events(read(metric_line(5, grad="0.000"))) == [(1, "suspicious", {"reason": "grad norm exactly 0.000"})]


@pytest.mark.parametrize(
    "line",
    [
        metric_line(5)[:200],
        metric_line(5)[:150] + metric_line(6),
        metric_line(5) + metric_line(6),
        metric_line(5, loss="1.5E+"),
        metric_line(5).replace(f"/{100:8d}", "/ 1x0"),
    ],
    ids=["cut", "spliced", "glued", "broken number", "broken total"],
)
def test_a_damaged_line_is_rejected_and_never_repaired(line):
    items = read(metric_line(4), line)
    assert len(records(items)) == 1
    rejected = items[1]
    assert isinstance(rejected, RejectedLine)
    assert rejected.line == 2
    assert line.startswith(rejected.text)


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=len(metric_line(5)) - 1), st.sampled_from(["1000.0", "1000.0/999.0"]))
def test_a_line_cut_anywhere_gives_no_record(length, elapsed):
    whole, cut = metric_line(4, elapsed=elapsed), metric_line(5, elapsed=elapsed)[:length]
    assert records(read(whole, cut))[1:] == []


def test_unknown_fields_are_kept_under_their_printed_name():
    line = metric_line(5).replace("| loss scale", "| my gauge: 2.5 | my word: warm | loss scale")
    assert records(read(line))[0].other == {"my gauge": 2.5, "my word": "warm"}


def test_average_pairs_of_both_primus_forms_are_apart():
    line = (
        metric_line(5, elapsed="13100.0/13240.9")
        .replace("| learning rate", "| compute per GPU (TFLOP/s/GPU): 579.4 (avg 573.6) | learning rate")
        .replace("| loss scale", "| tokens/s/GPU inst/harmonic mean: 10005.5/9903.7 | loss scale")
    )
    values = records(read(line))[0].values
    assert (values["step_time_s"], values["step_time_avg_s"]) == (13.1, 13.2409)
    assert (values["tflops_per_gpu"], values["tflops_per_gpu_avg"]) == (579.4, 573.6)
    assert values["tokens_per_s_per_gpu"] == 10005.5
    assert values["tokens_per_s_per_gpu_harmonic_mean"] == 9903.7


def test_a_misspelt_batch_size_of_mindspeed_is_read():
    line = metric_line(5).replace("global batch size", "gloabl batch size")
    assert records(read(line))[0].values["global_batch_size"] == 8


def test_the_validation_line_is_no_training_step():
    line = " validation loss at iteration 1000 | lm loss value: 2.345678E+00 | lm loss PPL: 1.044025E+01 | "
    record = records(read(line))[0]
    assert (record.step, record.values["kind"], record.values["val_loss"]) == (1000, "validation", 2.345678)
    assert record.loss is msgspec.UNSET


def test_the_memory_line_goes_to_its_rank():
    line = "[Rank 7] (after 2 iterations) memory (MB) | allocated: 20.50 | max allocated: 30.00 | reserved: 40.00"
    (aux,) = read(line)
    assert isinstance(aux, AuxRecord)
    assert aux.step == 2
    assert aux.values == {
        "rank": 7,
        "mem_allocated_mib": 20.5,
        "mem_max_allocated_mib": 30.0,
        "mem_reserved_mib": 40.0,
    }


def test_a_nemo_line_is_not_ours():
    assert read("Training epoch 0, iteration 120/149 | lr: 3e-05 | global_step: 120 | reduced_train_loss: 1.2 |") == []


def test_a_lower_step_begins_an_attempt():
    items = read(metric_line(80), metric_line(90), metric_line(85, loss="1.6E+00"), metric_line(95))
    assert [record.attempt for record in records(items)] == [1, 1, 2, 2]
    assert events(items) == [(3, "new_attempt", {"reason": "step 90 -> 85", "attempt": 2})]


def test_a_line_that_a_second_rank_repeats_begins_no_attempt():
    items = read(metric_line(80), metric_line(90), metric_line(80), metric_line(90))
    assert [record.attempt for record in records(items)] == [1, 1, 1, 1]
    assert events(items) == []


def test_a_run_of_another_length_in_the_same_file_is_counted_apart():
    items = read(metric_line(80, total=100), metric_line(5, total=50))
    assert [record.attempt for record in records(items)] == [1, 2]
    assert events(items) == []


RESUME = "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 100"


def test_the_checkpoint_that_a_log_starts_from_begins_no_second_attempt():
    items = read(RESUME, metric_line(101), RESUME, RESUME, metric_line(101))
    assert [record.attempt for record in records(items)] == [1, 2]
    assert [fields["attempt"] for _, _, fields in events(items)] == [1, 2, 2]


def test_a_stored_count_of_attempts_goes_on():
    first = MegatronAdapter()
    first.feed(1, metric_line(90))
    assert first.attempt_state == AttemptState(attempt=1, last_step=90, total_steps=100)
    items = read(metric_line(80), attempts=first.attempt_state)
    assert records(items)[0].attempt == 2


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_text_makes_the_adapter_raise(text):
    adapter = MegatronAdapter()
    for line in (text, f"iteration {text}", f" iteration 5/ 10 | {text} |", metric_line(5).replace("1.5E+00", text)):
        for item in adapter.feed(1, line):
            assert item.line == 1


def test_a_hostile_line_costs_no_more_than_its_length():
    for piece in (
        "successfully loaded checkpoint from ",
        "OVERFLOW! loss scale: ",
        "iteration 1/2 | a/",
        "[PG 1 Rank 2] ",
    ):
        MegatronAdapter().feed(1, piece * (1_000_000 // len(piece)))
    (rejected,) = read(" iteration 1/ 2 | " + "a: 1 | " * 100_000)
    assert isinstance(rejected, RejectedLine)


def test_the_framework_is_told_by_the_fields():
    adapter = MegatronAdapter()
    adapter.feed(1, metric_line(1))
    assert adapter.framework == "megatron-lm"
    adapter.feed(2, metric_line(2).replace("| loss scale", "| samples per second: 8.0 | loss scale"))
    assert adapter.framework == "megatron-deepspeed"


def test_none_printed_for_a_number_is_none():
    record = records(read(metric_line(5).replace("| grad norm", "| num zeros: None | grad norm")))[0]
    assert record.values["num_zeros"] is None
    assert math.isfinite(record.loss)
