"""Dialogs in which something is written: an answer, guidance, a new task; and one that shows a long text."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from trainflow_tui.screens import keys
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import MUTED, WARN, _, key_hints, line
from trainflow_tui.text import Display


class WritingDialog(ModalScreen[str | None]):
    """A text of several lines. ctrl+d sends it; leaving with words written asks once more."""

    takes: ClassVar[str] = "text"
    BINDINGS: ClassVar[list[BindingType]] = list(keys.WRITING_KEYS)

    def __init__(self, title: Display, about: Display, draft: str = "") -> None:
        """`draft` is what was written before and could not be recorded."""
        super().__init__()
        self._title_text, self._about, self._before = title, about, draft
        self.draft = TextArea(id="writing-area", compact=True)
        self.draft.cursor_blink = False
        self._hint = SteadyText(id="writing-hint")
        self._warned = False

    def compose(self) -> ComposeResult:
        """Title, what it is about, the text, the keys."""
        with Vertical(id="writing-box"):
            title, about = SteadyText(id="writing-title"), SteadyText(id="writing-about")
            title.show(as_text(self._title_text, "bold"))
            about.show(as_text(self._about, MUTED))
            yield title
            yield about
            yield self.draft
            yield self._hint

    def on_mount(self) -> None:
        """Put the cursor into the text."""
        self.draft.insert(self._before)
        self.draft.focus()
        self._hint.show(key_hints(("ctrl+d", _("send")), ("esc", _("back"))))

    def on_unmount(self) -> None:
        """Let go of the text area, which textual 8.2.8 would keep for ever as a watcher of the theme."""
        watchers = getattr(self.app, "__watchers", {}).get("theme", [])
        watchers[:] = [(node, callback) for node, callback in watchers if node is not self.draft]

    def action_send(self) -> None:
        """Answer with the text; an empty one is not sent."""
        words = self.draft.text.strip()
        if words:
            self.dismiss(words)

    def action_back(self) -> None:
        """Leave; a draft is given up only by a second press."""
        if self.draft.text.strip() and not self._warned:
            self._warned = True
            self._hint.show(line(_("Not sent. esc again gives the draft up, ctrl+d sends it"), WARN))
            self._hint.refresh(layout=True)  # it may take a second line now
        else:
            self.dismiss(None)


class LineDialog(ModalScreen[str | None]):
    """One line, such as a title. enter sends it."""

    takes: ClassVar[str] = "line"
    BINDINGS: ClassVar[list[BindingType]] = list(keys.LINE_KEYS)

    def __init__(self, title: Display, hint: Display, draft: str = "") -> None:
        """`draft` is what was written before and could not be recorded."""
        super().__init__()
        self._title_text, self._hint_text, self._before = title, hint, draft
        self._field = Input(id="line-field", compact=True)
        self._field.cursor_blink = False

    def compose(self) -> ComposeResult:
        """Title, field, hint."""
        with Vertical(id="line-box"):
            title, hint = SteadyText(id="line-title"), SteadyText(id="line-hint")
            title.show(as_text(self._title_text, "bold"))
            hint.show(as_text(self._hint_text, MUTED))
            yield title
            yield self._field
            yield hint

    def on_mount(self) -> None:
        """Put the cursor into the field."""
        self._field.insert(self._before, 0)
        self._field.focus()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.dismiss(event.value.strip())

    def action_back(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)


class ReadingDialog(ModalScreen[None]):
    """A long text to read; any of esc, q, enter leaves."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.READING_KEYS)

    def __init__(self, title: Display, text: Display) -> None:
        super().__init__()
        self._title_text, self._text = title, text

    def compose(self) -> ComposeResult:
        """Title and text."""
        with Vertical(id="reading-box"):
            title, hint = SteadyText(id="reading-title"), SteadyText(id="reading-hint")
            title.show(as_text(self._title_text, "bold"))
            hint.show(key_hints(("esc", _("back")), ("j k", _("move"))))
            yield title
            with VerticalScroll(id="reading-body"):
                body = SteadyText(id="reading-text")
                body.show(as_text(self._text))
                yield body
            yield hint

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one("#reading-body", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_back(self) -> None:
        """Leave."""
        self.dismiss(None)
