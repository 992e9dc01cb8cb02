from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.logs.records import LogEvent, LostSteps, MetricRecord, SeriesPoint
from trainflow_tui.monitoring.logs.series import effective_series, lost_steps


def record(step, attempt, loss=1.0, total=None):
    values = {} if total is None else {"total_steps": total}
    return MetricRecord(line=1, step=step, attempt=attempt, loss=loss, values=values)


def resume(step, attempt):
    return LogEvent(type="resume", line=1, fields={"step": step, "attempt": attempt})


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4), st.floats(0, 9)), max_size=40))
def test_the_newest_attempt_wins_each_step(triples):
    series = effective_series([record(step, attempt, loss) for step, attempt, loss in triples])
    assert [point.step for point in series] == sorted({step for step, _, _ in triples})
    for point in series:
        attempts = [attempt for step, attempt, _ in triples if step == point.step]
        last = [loss for step, attempt, loss in triples if (step, attempt) == (point.step, max(attempts))][-1]
        assert (point.attempt, point.loss) == (max(attempts), last)


def test_a_record_without_a_training_loss_is_no_point():
    validation = MetricRecord(line=1, step=5, values={"val_loss": 1.0})
    assert effective_series([record(4, 1), validation]) == (SeriesPoint(step=4, attempt=1, loss=1.0),)


def test_steps_behind_the_loaded_checkpoint_are_lost():
    records = [record(90, 1), record(120, 1), record(110, 2), record(120, 2), record(130, 2)]
    assert lost_steps(records, [resume(100, 2)]) == (
        LostSteps(first=101, last=120, attempt=1, reason="step 101..120 of attempt 1 were redone"),
    )


def test_without_a_resume_line_the_first_step_that_is_seen_counts():
    (loss,) = lost_steps([record(30, 1), record(10, 2)], [])
    assert (loss.first, loss.last) == (10, 30)
    assert loss.reason == "step 10..30 of attempt 1 are redone, attempt 2 is at 10"


def test_going_on_where_the_last_attempt_ended_loses_nothing():
    assert lost_steps([record(100, 1), record(110, 2)], [resume(100, 2)]) == ()


def test_a_run_of_another_length_loses_nothing():
    assert lost_steps([record(100, 1, total=200), record(5, 2, total=50)], []) == ()


def test_each_rewind_has_its_own_entry():
    records = [record(100, 1), record(60, 2), record(90, 2), record(80, 3)]
    found = lost_steps(records, [resume(50, 2), resume(70, 3)])
    assert [(entry.attempt, entry.first, entry.last) for entry in found] == [(1, 51, 100), (2, 71, 90)]
