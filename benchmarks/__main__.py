"""`make bench`: every measurement of this release, each figure beside its budget and the ratio of the two."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys

from benchmarks.measure import ROOT

PARTS = ("command_line", "ledger_writers", "store", "traces", "screen", "slow_demo")
NAMED_ONLY = ("slow_line", "soak")
"""Takes many minutes, or is in another part as far as a budget stands for it."""
MODULES = {"slow_demo": "demo_over_slow_line"}


def main() -> None:
    """Run all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without one. By name only: {', '.join(NAMED_ONLY)}"
    )
    parser.add_argument("--with-leet", action="store_true", help="screen: install W&B LEET and measure it beside ours")
    parser.add_argument("--hours", type=float, default=4.0, help="soak: simulated hours")
    given = parser.parse_args()
    unknown = set(given.parts) - {*PARTS, *NAMED_ONLY}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    options = {"screen": {"with_leet": given.with_leet}, "soak": {"hours": given.hours}}
    if len(given.parts) == 1:
        name = given.parts[0]
        importlib.import_module(f"benchmarks.{MODULES.get(name, name)}").run(**options.get(name, {}))
        return
    print(f"{'what':58} {'measured':>14} {'budget':>10} {'ratio':>7}", flush=True)
    flags = ["--with-leet"] * given.with_leet + ["--hours", str(given.hours)]
    for name in given.parts or PARTS:
        # A child's peak memory counts from its parent's size, so that each part starts small.
        subprocess.run([sys.executable, "-m", "benchmarks", name, *flags], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
