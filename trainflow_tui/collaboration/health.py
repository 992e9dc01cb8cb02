"""What is the matter with the workspace as a whole: read anew each time, since a full disk takes no record of it."""

from __future__ import annotations

from typing import Final

import msgspec

from trainflow_tui.collaboration import odd_entries
from trainflow_tui.files import shortage
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.workspace import Workspace

STANDING: Final = frozenset({"workspace-gone", "disk-short", "unreadable"})
"""Codes of what is not in the ledger: it stands as long as it is found."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that stands until somebody does something about it."""

    code: str
    """`workspace-gone`, `disk-short`, `unreadable`, `no-events`, `not-collected` or `not-read`."""
    detail: str
    """What it is about, in a few words: a file, an amount."""
    text: str
    """The whole sentence."""


def standing(workspace: Workspace) -> list[Trouble]:
    """What no ledger row can tell: the place is gone, the disk has no room. Two system calls, fit for each second."""
    if workspace.is_displaced():
        text = f"{workspace.root} is not where it was: nothing is collected until it is back."
        return [Trouble(code="workspace-gone", detail=workspace.root.name, text=text)]
    short = shortage(workspace.state)
    text = f"Nothing that is measured is recorded: {short}. Decisions are, as long as the disk takes them."
    return [Trouble(code="disk-short", detail=short, text=text)] if short else []


def recorded(ledger: Ledger) -> list[Trouble]:
    """What the collector has left: changes that nobody reports to it, files that it cannot take, entries that it does not read."""
    found = [
        Trouble(code="no-events", detail="", text=text)
        for (text,) in ledger.query("SELECT detail FROM pulse WHERE topic = 'watch' AND detail != ''")
    ]
    for task, name, state, detail in ledger.query(
        "SELECT task, name, state, detail FROM human_file "
        "WHERE state NOT IN ('collected', 'unchanged', 'editing', ?) ORDER BY task, name",
        (odd_entries.STATE,),
    ):
        text = f"{task}/{name} cannot be collected: {detail or state}"
        found.append(Trouble(code="not-collected", detail=f"{task}/{name}", text=text))
    return found + [
        Trouble(code="not-read", detail="/".join(filter(None, (entry.task, entry.name))), text=entry.sentence)
        for entry in odd_entries.stored(ledger)
    ]
