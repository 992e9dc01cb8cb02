import json
import math

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.logs.jsonl import JsonLinesAdapter
from trainflow_tui.monitoring.logs.numbers import duration_s
from trainflow_tui.monitoring.logs.records import LogEvent, MetricRecord, RejectedLine


def read(*lines):
    adapter = JsonLinesAdapter()
    return [item for number, line in enumerate(lines, start=1) for item in adapter.feed(number, line)]


def test_common_names_are_canonical():
    (record,) = read('{"global_step": 7, "train/loss": 2.5, "learning_rate": 1e-4, "grad_norm": "0.5", "my/gauge": 3}')
    assert (record.step, record.loss) == (7, 2.5)
    assert record.values == {"lr": 1e-4, "grad_norm": 0.5}
    assert record.other == {"my/gauge": 3.0}
    assert record.losses == {"train/loss": 2.5}


def test_a_throughput_without_unit_is_not_given_one():
    (record,) = read('{"step": 1, "loss": 1.0, "throughput": 250.0}')
    assert record.values == {}


def test_bare_nan_and_infinity_are_numbers():
    record, event = read('{"step": 1, "loss": NaN, "grad_norm": -Infinity}')
    assert math.isnan(record.loss)
    assert record.values["grad_norm"] == -math.inf
    assert event == LogEvent(type="non_finite", line=1, fields={"fields": ["loss", "grad_norm"]})


def test_glued_objects_are_each_read():
    items = read('{"step": 1, "loss": 1.0}{"step": 2, "loss": 0.5} {"step": 3, "loss": 0.25}')
    assert [(item.step, item.loss) for item in items] == [(1, 1.0), (2, 0.5), (3, 0.25)]


def test_a_line_that_is_cut_is_rejected_and_what_stood_before_it_is_kept():
    first, rejected = read('{"step": 1, "loss": 1.0}{"step": 2, "lo')
    assert isinstance(first, MetricRecord)
    assert isinstance(rejected, RejectedLine)


def test_a_line_without_a_step_is_rejected_only_if_it_has_a_loss():
    (rejected,) = read('{"event": "start", "config": {"loss_scale": 1}}', '{"loss": 1.0}')
    assert (rejected.line, rejected.reason) == (2, "a loss without a step")


def test_an_evaluation_row_has_no_training_loss():
    (record,) = read('{"step": 10, "eval_loss": 2.0}')
    assert record.loss is msgspec.UNSET
    assert record.values == {"val_loss": 2.0}


def test_only_a_closed_object_is_complete_without_its_newline():
    adapter = JsonLinesAdapter()
    text = '{"step": 1, "loss": NaN}'
    assert adapter.is_whole(text)
    assert not any(adapter.is_whole(text[:length]) for length in range(1, len(text)))


@settings(deadline=None)
@given(
    st.integers(min_value=0, max_value=10**12),
    st.none() | st.floats(),
    st.dictionaries(st.text(), st.recursive(st.none() | st.floats() | st.text() | st.booleans(), st.lists)),
)
def test_any_object_with_a_step_gives_one_record_with_its_loss(step, loss, rest):
    entry = {"zz" + name: value for name, value in rest.items()} | {"step": step, "loss": loss}
    record = read(json.dumps(entry))[0]
    assert record.step == step
    assert record.loss == loss or (math.isnan(record.loss) and math.isnan(loss))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_adapter_raise(text):
    read(text, "{" + text, '{"step": 1, "loss": ' + text)


def test_deep_nesting_and_huge_numbers_are_rejected_not_raised():
    items = read('{"step": 1, "a": ' + "[" * 100_000, '{"step": ' + "9" * 10_000 + ', "loss": 1}')
    assert all(isinstance(item, RejectedLine) for item in items)


def test_durations_in_words_and_digits():
    assert duration_s("5:13:22") == 5 * 3600 + 13 * 60 + 22
    assert duration_s("3 days, 5:00:00") == 77 * 3600
    assert duration_s("0:36:58.55") == 36 * 60 + 58.55
    assert duration_s("soon") is None
    assert duration_s(5) is None
