"""`make bench`: every measurement of this release, each figure beside its budget and the ratio of the two."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys

from benchmarks.measure import ROOT

PARTS = ("command_line", "ledger_writers", "store", "traces", "screen")


def main() -> None:
    """Run all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without one")
    wanted = parser.parse_args().parts
    if len(wanted) == 1:
        importlib.import_module(f"benchmarks.{wanted[0]}").run()
        return
    print(f"{'what':58} {'measured':>14} {'budget':>10} {'ratio':>7}", flush=True)
    for name in wanted or PARTS:
        # A child's peak memory counts from its parent's size, so that each part starts small.
        subprocess.run([sys.executable, "-m", "benchmarks", name], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
