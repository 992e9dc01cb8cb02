"""Which item of a changed file is which item that is known: pure, deterministic, and never one for two.

A wrong "new" costs the human a second receipt, a wrong "same" would hand the receipts of one wish to another; so what is
not clearly the same is new.
"""

from __future__ import annotations

import base64
import hashlib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

import msgspec

from trainflow_tui.collaboration.guidance_file import Item

__all__ = ["KnownItem", "Match", "MatchKind", "match_items", "new_item_id"]

SIMILAR: Final = 0.6
_COMPARED_CHARACTERS: Final = 20_000
_NEIGHBOURS: Final = 8
"""Within a gap an item is compared with those up to so many places away, and with those of the same heading."""


class KnownItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item of the file's last version, as it was collected."""

    id: str
    anchor: str
    heading: str
    text: str
    position: int


class MatchKind(StrEnum):
    """What an item of the changed file is."""

    SAME = "same"
    """Its text is unchanged; it may have been moved."""
    REVISED = "revised"
    NEW = "new"


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of the changed file and the known one that it is."""

    kind: MatchKind
    item: Item
    known_id: str | None
    """None for a new item."""


def match_items(old: Sequence[KnownItem], new: Sequence[Item]) -> list[Match]:
    """Match the items of a changed file, in its order, with those of its last version; a known one is met at most once.

    An explicit id decides alone: an item that shows an id which is not known is new. Then the unchanged text decides, in
    the order of occurrence. Of what is left, an item is a revision of a known one between the same neighbours if it has
    its heading, or at least 0.6 of its words; the best pair first. Known items that none is matched with have disappeared.
    """
    partner = _by_id_and_text(old, new)
    partner.update(_by_place_and_likeness(old, new, partner))
    matches = []
    for index, item in enumerate(new):
        known = old[partner[index]] if index in partner else None
        kind = MatchKind.NEW
        if known is not None:
            kind = MatchKind.SAME if known.anchor == item.anchor else MatchKind.REVISED
        matches.append(Match(kind=kind, item=item, known_id=known.id if known else None))
    return matches


def new_item_id(task: str, item: Item, taken: Container[str]) -> str:
    """The id of a new item: the one it shows, else, or where that is taken, `g:` and letters that follow from its text.

    Six letters, more where those are taken: the same for the same text, whichever process meets it first.
    """
    if item.explicit_id is not None and item.explicit_id not in taken:
        return item.explicit_id
    digest = hashlib.sha256(f"{task}\0{item.anchor}\0{item.occurrence}".encode()).digest()
    letters = base64.b32encode(digest).decode().lower().rstrip("=")
    return next(id_ for length in range(6, len(letters) + 1) if (id_ := f"g:{letters[:length]}") not in taken)


def _by_id_and_text(old: Sequence[KnownItem], new: Sequence[Item]) -> dict[int, int]:
    """Places in `new` to places in `old`."""
    by_id = {item.id: place for place, item in enumerate(old)}
    partner = {i: by_id[item.explicit_id] for i, item in enumerate(new) if item.explicit_id in by_id}
    met = set(partner.values())
    by_anchor: dict[str, list[int]] = defaultdict(list)
    # Backwards, to be popped from the end.
    for place in sorted(range(len(old)), key=lambda place: old[place].position, reverse=True):
        if place not in met:
            by_anchor[old[place].anchor].append(place)
    for index, item in enumerate(new):
        if item.explicit_id is None and by_anchor[item.anchor]:
            partner[index] = by_anchor[item.anchor].pop()
    return partner


def _by_place_and_likeness(
    old: Sequence[KnownItem], new: Sequence[Item], partner: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Revisions: pairs of what is left between the same neighbours."""
    order = sorted(range(len(old)), key=lambda place: old[place].position)
    rank = {place: number for number, place in enumerate(order)}
    met = set(partner.values())
    spine = _longest_increasing([(i, rank[p]) for i, p in sorted(partner.items())])
    left_new, left_old = -1, -1
    for right_new, right_old in [*spine, (len(new), len(order))]:
        wanted = [i for i in range(left_new + 1, right_new) if i not in partner and new[i].explicit_id is None]
        known = [order[r] for r in range(left_old + 1, right_old) if order[r] not in met]
        yield from _best_pairs(new, wanted, old, known)
        left_new, left_old = right_new, right_old


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs that stand in the same order on both sides; the others were moved (patience sorting)."""
    tops: list[int] = []
    top_index: list[int] = []
    before: list[int] = []
    for index, (_, rank) in enumerate(pairs):
        pile = bisect_left(tops, rank)
        before.append(top_index[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [rank]
        top_index[pile : pile + 1] = [index]
    chosen = []
    at = top_index[-1] if top_index else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _best_pairs(
    new: Sequence[Item], wanted: list[int], old: Sequence[KnownItem], known: list[int]
) -> Iterator[tuple[int, int]]:
    if not wanted or not known:
        return
    words = {place: _words(old[place].text) for place in known}
    scored: list[tuple[bool, float, int, int, int]] = []
    for number, index in enumerate(wanted):
        matcher = SequenceMatcher(None, b=_words(new[index].text))
        centre = number * len(known) // len(wanted)
        for place_number, place in enumerate(known):
            same_heading = bool(new[index].heading) and new[index].heading == old[place].heading
            if not same_heading and abs(place_number - centre) > _NEIGHBOURS:
                continue
            matcher.set_seq1(words[place])
            likeness = _likeness(matcher)
            if same_heading or likeness >= SIMILAR:
                scored.append((not same_heading, -likeness, abs(place_number - number), index, place))
    used_new: set[int] = set()
    used_old: set[int] = set()
    for *_, index, place in sorted(scored):
        if index not in used_new and place not in used_old:
            used_new.add(index)
            used_old.add(place)
            yield index, place


_WORD: Final = re.compile(r"[A-Za-z0-9_]+|[^\sA-Za-z0-9_]")


def _words(text: str) -> list[str]:
    """Words of Latin letters and digits, each other character by itself (Chinese has no blanks between words)."""
    return _WORD.findall(text[:_COMPARED_CHARACTERS].removeprefix("##"))


def _likeness(matcher: SequenceMatcher[str]) -> float:
    """Share of equal words in equal order, 0 to 1; 0 if a cheap upper bound shows that it stays below `SIMILAR`."""
    if matcher.real_quick_ratio() < SIMILAR or matcher.quick_ratio() < SIMILAR:
        return 0.0
    return matcher.ratio()
