"""Settings: who overrides whom, where a value came from, what is refused."""

from __future__ import annotations

import pytest

from trainflow_tui import config
from trainflow_tui.errors import UsageError


def origin(found, key):
    return next(s.origin for s in found if s.key == key)


def test_each_source_overrides_the_one_before(tmp_path, monkeypatch):
    user = config.user_file()
    user.parent.mkdir(parents=True)
    settings, found = config.load(workspace=tmp_path, environment={})
    assert (settings.poll_seconds, origin(found, "poll_seconds")) == (300, "default")
    user.write_text("poll_seconds = 100\n")
    assert config.load(workspace=tmp_path, environment={})[0].poll_seconds == 100
    (tmp_path / "trainflow.toml").write_text("poll_seconds = 50\n")
    settings, found = config.load(workspace=tmp_path, environment={})
    assert (settings.poll_seconds, origin(found, "poll_seconds")) == (50, str(tmp_path / "trainflow.toml"))
    settings, found = config.load(workspace=tmp_path, environment={"TRAINFLOW_POLL_SECONDS": "20"})
    assert (settings.poll_seconds, origin(found, "poll_seconds")) == (20, "TRAINFLOW_POLL_SECONDS")
    settings, found = config.load(
        workspace=tmp_path, environment={"TRAINFLOW_POLL_SECONDS": "20"}, flags={"poll_seconds": 5}
    )
    assert (settings.poll_seconds, origin(found, "poll_seconds")) == (5, "--poll-seconds")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("poll_seconds = 0", "1 to 3600"),
        ("poll_seconds = 3601", "1 to 3600"),
        ("poll_seconds = true", "1 to 3600"),
        ('poll_seconds = "often"', "1 to 3600"),
        ('theme = "pink"', "dark, light, ansi, high-contrast or colour-blind"),
        ("readonly = 3", "true or false"),
        ("polls = 3", "no setting 'polls'"),
        ("poll_seconds = ", "trainflow.toml"),
    ],
)
def test_a_bad_value_names_the_origin_and_what_was_expected(tmp_path, text, names):
    (tmp_path / "trainflow.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        config.load(workspace=tmp_path, environment={})
    assert names in str(refused.value)
    assert "trainflow.toml" in str(refused.value)


def test_other_variables_of_ours_are_no_settings():
    assert config.load(environment={"TRAINFLOW_AGENT": "a", "TRAINFLOW_WORKSPACE": "/x"})[0] == config.Settings()
