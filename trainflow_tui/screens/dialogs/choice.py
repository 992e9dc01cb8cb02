"""A question with a few answers, one key each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from trainflow_tui.screens.host import Host
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, joined, line
from trainflow_tui.text import Display


@dataclass(frozen=True)
class Choice:
    """One answer: its key, its words, and what the dialog answers."""

    key: str
    words: Display
    answer: str


class ChoiceDialog(ModalScreen[str | None]):
    """Answers with the choice whose key was pressed; escape answers None."""

    takes: ClassVar[str] = "key"

    app: Host

    def __init__(self, title: Display, about: Display, choices: tuple[Choice, ...]) -> None:
        super().__init__()
        self._title_text, self._about, self._choices = title, about, choices

    def compose(self) -> ComposeResult:
        """Title, explanation, a line a choice."""
        with Vertical(id="choice-box"):
            title, about = SteadyText(id="choice-title"), SteadyText(id="choice-about")
            title.show(as_text(self._title_text, "bold"))
            about.show(as_text(self._about))
            yield title
            yield about
            for choice in self._choices:
                row = SteadyText(classes="choice-row")
                row.show(joined(line(f" {choice.key}", ACCENT), as_text(choice.words), gap="  "))
                yield row

    def on_key(self, event: events.Key) -> None:
        """Answer, or leave on escape."""
        event.stop()
        if event.key == "escape":
            self.dismiss(None)
            return
        for choice in self._choices:
            if event.key == choice.key:
                self.dismiss(choice.answer)
                return
        self.app.release_keys()
