"""Text in a box of fixed size: an equal text repaints nothing, a new one never lays the screen out again."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content
from textual.widgets import Static

from trainflow_tui.screens.widgets.cells import same_drawing


class SteadyText(Static):
    """Its size comes from the style sheet alone (one line high unless that says otherwise).

    Textual's own `Static.update` lays out the whole screen: 2,000 B/s at 1 Hz where this sends 206 (rule R1).
    """

    DEFAULT_CSS = """
    SteadyText { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(markup=False, id=id, classes=classes)
        self._shown: Text | Content = Content("")

    def show(self, content: Text | Content) -> None:
        """Draw this from now on.

        Raises:
            TypeError: a bare string, which Textual would read as markup.
        """
        if not isinstance(content, Text | Content):
            raise TypeError(f"SteadyText shows Text or Content, not {type(content).__name__}")
        if same_drawing(content, self._shown):
            return
        self._shown = content
        self.update(content, layout=False)
