import pytest

from trainflow_tui.monitoring.logs.generic import GenericTextAdapter
from trainflow_tui.monitoring.logs.numbers import AmbiguousNumber, read_number
from trainflow_tui.monitoring.logs.records import MetricRecord, RejectedLine


def read(line):
    return GenericTextAdapter().feed(1, line)


@pytest.mark.parametrize(
    "line",
    [
        "iteration 18 loss 1.0",
        "step: 18 loss: 1.0",
        "step=18/200, loss=1.0",
        "[2026-01-01 10:00:00] iter 18: loss 1.0",
    ],
)
def test_a_step_and_pairs_are_a_record(line):
    (record,) = read(line)
    assert (record.step, record.loss) == (18, 1.0)


@pytest.mark.parametrize(
    "line",
    [
        "iter 2980: loss 3.8993, time 1099.18ms, mfu 15.34%",
        "step   10/74 | loss     nan (+nanz)| norm    nan",
        "[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  memory:  9.46GiB(65%)",
        "Training epoch 0, iteration 120/149 | lr: 3e-05 | reduced_train_loss: 1.233",
        "step 18 of the loss analysis",
        "step 18 loss 1.0 loss 2.0",
        "iteration 18 gradients 1.0",
    ],
)
def test_a_line_with_anything_else_is_not_read_in_part(line):
    assert read(line) == []


@pytest.mark.parametrize("line", ["step: 10 loss: 2,345 lr: 1,0E-04", "step: 10 loss: 2,5", "step 1 loss 1.000,5"])
def test_a_comma_that_may_part_decimals_is_rejected(line):
    (rejected,) = read(line)
    assert isinstance(rejected, RejectedLine)
    assert rejected.reason.startswith("decimal comma")


def test_the_crash_lines_between_the_records_are_told():
    adapter = GenericTextAdapter()
    assert isinstance(adapter.feed(1, "iteration 1 loss 1.0")[0], MetricRecord)
    (event,) = adapter.feed(2, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    assert event.type == "out_of_memory"


def test_thousands_separators_are_read_only_where_they_are_certain():
    assert read_number("12,345.6") == 12345.6
    assert read_number("1,234,567") == 1234567
    for text in ("2,345", "1,0E-04", "12.345,6", "1,23,456", ",5"):
        with pytest.raises(AmbiguousNumber):
            read_number(text)
