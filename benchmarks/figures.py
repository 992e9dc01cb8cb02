"""Figures of ours and of LEET by name: printed as they come, and together at the end with budgets and ratios."""

from __future__ import annotations

from benchmarks import leet
from benchmarks.measure import conditions, show


class Figures:
    """Ours and theirs by name, printed as they come and together at the end."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[float | None, float | None, float | None, str]] = {}
        self._stored = False

    def ours(self, name: str, value: float | None, unit: str, budget: float | None = None) -> None:
        """A figure of ours."""
        self._rows[name] = (value, budget, None, unit)
        show(name, value, budget, unit)

    def theirs(self, name: str, value: float | None, unit: str) -> None:
        """The same figure of LEET."""
        ours, budget, _, _ = self._rows.get(name, (None, None, None, unit))
        self._rows[name] = (ours, budget, value, unit)
        show(f"LEET: {name}", value, None, unit)

    def take_stored(self) -> None:
        """Take LEET's figures from the specification, which were measured another day."""
        self._stored = True
        for name, value in leet.STORED.items():
            if name in self._rows:
                self._rows[name] = (*self._rows[name][:2], value, self._rows[name][3])

    def table(self) -> None:
        """All of it, with the ratios of ours to the budget and to LEET."""
        theirs = "LEET, stored" if self._stored else "LEET"
        print(f"\n{'what':52} {'ours':>9}      {'budget':>8} {'ratio':>6}  {theirs:>12} {'ratio':>6}")
        for name, (value, budget, other, unit) in self._rows.items():
            cells = [
                f"{name:52} {_number(value, 9)} {unit:4} {_number(budget, 8)} {_ratio(value, budget)}",
                f"{_number(other, 12)} {_ratio(value, other)}",
            ]
            print("  ".join(cells).rstrip())
        if self._stored:
            print("LEET, stored: version 0.31.0 on another day, with three charts. --with-leet measures it here.")
        print(f"at the end: {conditions()}")


def _number(value: float | None, width: int) -> str:
    if value is None:
        return f"{'–':>{width}}"
    return f"{value:{width}.0f}" if abs(value) >= 100 or value == 0 else f"{value:{width}.3g}"


def _ratio(value: float | None, to: float | None) -> str:
    return f"{value / to:6.2f}" if value is not None and to else f"{'–':>6}"
