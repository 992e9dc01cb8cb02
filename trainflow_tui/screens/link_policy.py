"""What a click inside drawn text may run: a closed list, and on it nothing that decides, ends or writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.actions import ActionError, parse

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode
    from textual.events import Event

    _App = App[Any]
else:
    _App = object

ALLOWED: Final = frozenset({"link", "grab", "scroll_up", "scroll_down"})
"""`link` reports a click on a Markdown link to its widget; the others are how Textual's own scroll bars work."""


def allowed_from_link(action: str) -> bool:
    """Whether an action that stands in text may run: a bare name on the list. One with a namespace reaches the app."""
    try:
        namespace, name, _parameters = parse(action)
    except ActionError:
        return False
    return not namespace and name in ALLOWED


class LinkPolicy(_App):
    """Mix in before `App`: mouse events on text run only what `allowed_from_link` accepts.

    Keys, buttons and the command palette do not come this way (textual 8.2.8: `App._broker_event` reads the `@click`,
    `@mouse.down` and `@mouse.up` of the style under the pointer, and nothing else calls it).
    """

    async def _broker_event(self, event_name: str, event: Event, default_namespace: DOMNode) -> bool:
        meta = getattr(getattr(event, "style", None), "meta", None) or {}
        for key, action in meta.items():
            if key.startswith("@") and not allowed_from_link(action[0] if isinstance(action, tuple) else str(action)):
                event.stop()
                return False
        return await super()._broker_event(event_name, event, default_namespace)
