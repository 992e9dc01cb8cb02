"""The one input line of a screen: a filter with live preview, or a command with what could be meant below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from trainflow_tui.screens import keys
from trainflow_tui.screens.commands import Suggestion
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, MUTED, _, joined, line

Purpose = Literal["", "filter", "command"]


class PromptInput(Input):
    """The field itself. Its keys speak to the bar around it."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.PROMPT_KEYS)

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.cursor_blink = False

    @property
    def _bar(self) -> PromptBar:
        bar = self.parent.parent if self.parent else None
        assert isinstance(bar, PromptBar)
        return bar

    def action_cancel(self) -> None:
        """Close it and restore what was before."""
        self._bar.post_message(PromptBar.Cancelled())

    def action_recall(self, step: int) -> None:
        """Choose among what could be meant, or go through earlier input."""
        self._bar.recall(step)

    def action_complete(self) -> None:
        """Take the first of what could be meant; in a filter switch between words and pattern."""
        self._bar.complete()


class PromptBar(Vertical):
    """Says `Previewed` while a filter is typed, `Asked` when a command line changes, `Entered` on enter, `Cancelled` on escape."""

    DEFAULT_CSS = """
    PromptBar { height: auto; width: 1fr; display: none; }
    PromptBar > Horizontal { height: 1; width: 1fr; }
    PromptBar #prompt-sign { width: 2; height: 1; }
    PromptBar #suggestions { height: auto; max-height: 8; width: 1fr; padding: 0 2; }
    """

    @dataclass
    class Previewed(Message):
        """The filter so far."""

        text: str
        is_regex: bool

    @dataclass
    class Asked(Message):
        """The command so far, for suggestions."""

        text: str

    @dataclass
    class Entered(Message):
        """A line was sent."""

        purpose: Purpose
        text: str

    class Cancelled(Message):
        """The line was given up."""

    class Completed(Message):
        """What was to be completed is: keys that waited for it may come."""

    def __init__(self) -> None:
        super().__init__(id="prompt-bar")
        self.field = PromptInput()
        self.purpose: Purpose = ""
        self.is_regex = False
        self._sign = SteadyText(id="prompt-sign")
        self._list = SteadyText(id="suggestions")
        self._found: Sequence[Suggestion] = ()
        self._found_for: str | None = None
        """The line that they belong to; another one than the field's while they are looked up."""
        self._completing: str | None = None
        self._choice = -1
        self._past: Sequence[str] = ()
        self._back = 0

    def compose(self) -> ComposeResult:
        """What could be meant, above the field."""
        yield self._list
        with Horizontal():
            yield self._sign
            yield self.field

    def open(self, purpose: Purpose, text: str, *, is_regex: bool, past: Sequence[str]) -> None:
        """Show the line with a text in it. `past` is earlier input, the newest first."""
        self.purpose, self.is_regex, self._past, self._back = purpose, is_regex, past, 0
        self.field.placeholder = (
            _("words to find; ! first for all others; tab for a pattern") if purpose == "filter" else ""
        )
        self.suggest(())
        self.field.value = text
        self.display = True
        self._show_sign()
        self.screen.set_focus(self.field)  # at once, where `focus()` waits for its turn: the next key is meant for it
        self.field.cursor_position = len(text)
        if purpose == "command":
            self.post_message(self.Asked(text))

    def close(self) -> None:
        """Hide it."""
        self.purpose = ""
        self.display = False
        self.suggest(())

    def suggest(self, found: Sequence[Suggestion], of: str | None = None) -> None:
        """Show what could be meant by a line, and complete it where that was asked already."""
        self._found, self._found_for, self._choice = found, of, -1
        asked, self._completing = self._completing, None
        self._draw()
        if asked is not None and asked == of:
            self._take()

    def recall(self, step: int) -> None:
        """Move the choice among suggestions; without them, through earlier input."""
        if self._found and self.field.value:
            self._choice = max(-1, min(len(self._found) - 1, self._choice - step))
            self._draw()
        elif self._past:
            self._back = max(0, min(len(self._past), self._back + step))
            self.field.value = self._past[self._back - 1] if self._back else ""
            self.field.cursor_position = len(self.field.value)

    def complete(self) -> None:
        """Take a suggestion, or switch the filter's kind."""
        if self.purpose == "filter":
            self.is_regex = not self.is_regex
            self._show_sign()
            self.post_message(self.Previewed(self.field.value, self.is_regex))
            self.post_message(self.Completed())
        elif self._found_for != self.field.value:
            self._completing = self.field.value
        else:
            self._take()

    def _take(self) -> None:
        if self._found:
            line = self._found[max(0, self._choice)].line
            self.field.value = line if line.endswith("/") else f"{line} "
            self.field.cursor_position = len(self.field.value)
        self.post_message(self.Completed())

    def _show_sign(self) -> None:
        sign = ":" if self.purpose == "command" else "~" if self.is_regex else "/"
        self._sign.show(line(sign, ACCENT))

    def _draw(self) -> None:
        rows = [
            joined(line(s.line, "reverse bold" if n == self._choice else ACCENT), line(s.words, MUTED), gap="  ")
            for n, s in enumerate(self._found)
        ]
        self._list.display = bool(rows)
        text = Text("\n").join(rows)
        text.no_wrap, text.overflow = True, "ellipsis"
        self._list.show(text)
        self._list.styles.height = max(1, len(rows))

    @on(Input.Changed, "#prompt")
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._choice = -1  # it was made among what the line could mean before
        if self.purpose == "filter":
            self.post_message(self.Previewed(event.value, self.is_regex))
        elif self.purpose == "command":
            self.post_message(self.Asked(event.value))

    @on(Input.Submitted, "#prompt")
    def _sent(self, event: Input.Submitted) -> None:
        event.stop()
        text = self._found[self._choice].line if self._found and self._choice >= 0 else event.value
        self.post_message(self.Entered(self.purpose, text))
