"""`make bench`: every measurement of this release, each figure beside its budget and the ratio of the two."""

from __future__ import annotations

import argparse

from benchmarks import command_line, ledger_writers, screen, store, traces

PARTS = {
    "command-line": command_line.run,
    "ledger": ledger_writers.run,
    "store": store.run,
    "traces": traces.run,
    "screen": screen.run,
}


def main() -> None:
    """Run all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without one")
    wanted = parser.parse_args().parts or list(PARTS)
    print(f"{'what':58} {'measured':>12} {'budget':>12} {'ratio':>7}")
    for name in wanted:
        PARTS[name]()


if __name__ == "__main__":
    main()
