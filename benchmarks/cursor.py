"""How long a key takes: to the first byte, and until the row under the cursor is drawn whole."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.line import Line

Stripe = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Press:
    """Milliseconds from the key; None is not seen within the limit. Bytes until the output rested or the row was drawn."""

    first_byte_ms: float | None
    drawn_ms: float | None
    sent_bytes: int


class Cursor:
    """The cursor of a list, learnt from one move down: two rows exchange their background on the same columns."""

    def __init__(self, line: Line, keys: tuple[str, str]) -> None:
        """`keys` move down and up.

        Raises:
            RuntimeError: the key moved nothing that could be told from the picture.
        """
        self._line, self._keys = line, keys
        before = self._stripes()
        line.send(keys[0])
        line.rest(1.0, limit_s=5)
        after = self._stripes()
        for row in range(line.height - 1):
            columns = [x for x, (a, b) in enumerate(zip(before[row], after[row], strict=True)) if a != b]
            if columns and _on(before[row], columns) == _on(after[row + 1], columns) != _on(after[row], columns):
                break
        else:
            raise RuntimeError(f"the key {keys[0]!r} moved no cursor; the screen shows\n{line.text}")
        self._columns, self._rows = columns, (row, row + 1)
        self._lit, self._dark = _on(before[row], columns), _on(after[row], columns)
        self._at = 1

    def press(self, *, limit_s: float) -> Press:
        """Move it back or forth."""
        line, target = self._line, 1 - self._at
        since, begin = line.here, line.clock()
        line.send(self._keys[0] if target else self._keys[1])
        self._at = target
        drawn = line.await_first(lambda: self._stands_on(target), since, limit_s)
        first = line.moment(since) if line.here > since else None
        return Press(
            first_byte_ms=None if first is None else 1000 * (first - begin),
            drawn_ms=None if drawn is None else 1000 * (line.moment(drawn) - begin),
            sent_bytes=line.bytes_between(since, None if drawn is None else drawn + 1),
        )

    def _stands_on(self, target: int) -> bool:
        lit, dark = self._rows[target], self._rows[1 - target]
        return (
            _on(self._line.stripe(lit), self._columns) == self._lit
            and _on(self._line.stripe(dark), self._columns) == self._dark
        )

    def _stripes(self) -> list[Stripe]:
        self._line.draw()
        return [self._line.stripe(row) for row in range(self._line.height)]


def _on(stripe: Stripe, columns: list[int]) -> Stripe:
    return tuple(stripe[x] for x in columns)
