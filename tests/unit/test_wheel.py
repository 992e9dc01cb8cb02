"""What is shipped: a wheel built from this tree runs from anywhere and has its data with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    built = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("*.whl")
    place = built / "site"
    zipfile.ZipFile(wheel).extractall(place)
    return place


def run(place, *words):
    environment = os.environ | {"PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, "-m", "trainflow_tui", *words],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_holds_one_package_and_its_data(unpacked):
    names = {p.name for p in unpacked.iterdir()}
    assert {n for n in names if not n.endswith(".dist-info")} == {"trainflow_tui"}
    for data in (
        "screens/styles/trainflow.tcss",
        "monitoring/nodes/collector.sh",
        "knowledge/pages/README.md",
        "py.typed",
    ):
        assert (unpacked / "trainflow_tui" / data).is_file(), data


def test_it_runs_where_no_checkout_is(unpacked, tmp_path):
    root = tmp_path / "ws"
    root.mkdir(mode=0o700)
    done = run(unpacked, "--workspace", str(root), "node", "check", "--json")
    assert done.returncode in (0, 20), done.stderr
    assert json.loads(done.stdout)["name"]
    probe = "import trainflow_tui.app as a, pathlib; print(pathlib.Path(a.__file__).parent)"
    environment = os.environ | {"PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    where = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert where.stdout.strip() == str(unpacked / "trainflow_tui")
