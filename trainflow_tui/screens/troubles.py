"""The header's banner: the worst of what stands until somebody does something about it, and how many others there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainflow_tui.collaboration.health import Trouble
from trainflow_tui.language import N_
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display

_WORDS: Final = {
    "workspace-gone": N_("{detail} is not where it was"),
    "disk-short": N_("disk: {detail}"),
    "unreadable": N_("not readable: {detail}"),
    "no-events": N_("changes are not reported"),
    "not-collected": N_("not collected: {detail}"),
    "not-read": N_("not read: {detail}"),
}
"""By the code of the trouble; few words, for one line of 80 cells."""


def banner(troubles: Sequence[Trouble]) -> Display | None:
    """The words for the header; None where nothing is the matter."""
    if not troubles:
        return None
    first, others = troubles[0], len(troubles) - 1
    words = say(_(_WORDS.get(first.code, "{detail}")), detail=first.detail)
    return say("⚠ {words} +{n}", words=words, n=others) if others else say("⚠ {words}", words=words)
