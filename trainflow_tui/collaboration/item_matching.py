"""Which item of a file's new version is which item of the old one: by id, by content, by place and likeness."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Container, Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec

from trainflow_tui.collaboration.guidance_file import Item

LIKENESS: Final = 0.6
COMPARED_CHARACTERS: Final = 20_000


class KnownItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item as the ledger holds it."""

    id: str
    anchor: str
    heading: str
    text: str
    position: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the new version; `known_id` is None for a new one. `kind` is same, revised or new."""

    item: Item
    known_id: str | None
    kind: str


def match_items(old: Sequence[KnownItem], new: Sequence[Item]) -> list[Match]:
    """Match in the order of certainty: explicit id, equal content, likeness between the same neighbours."""
    pairs: dict[int, int] = {}
    _by_id(old, new, pairs)
    _by_anchor(old, new, pairs)
    _by_place(old, new, pairs)
    return [_match(old, item, pairs.get(index)) for index, item in enumerate(new)]


def _match(old: Sequence[KnownItem], item: Item, place: int | None) -> Match:
    if place is None:
        return Match(item=item, known_id=None, kind="new")
    known = old[place]
    return Match(item=item, known_id=known.id, kind="same" if known.anchor == item.anchor else "revised")


def _by_id(old: Sequence[KnownItem], new: Sequence[Item], pairs: dict[int, int]) -> None:
    places = {known.id: place for place, known in enumerate(old)}
    for index, item in enumerate(new):
        if item.explicit_id in places:
            pairs[index] = places[item.explicit_id]


def _by_anchor(old: Sequence[KnownItem], new: Sequence[Item], pairs: dict[int, int]) -> None:
    used = set(pairs.values())
    waiting: dict[str, list[int]] = {}
    for place, known in enumerate(old):
        if place not in used:
            waiting.setdefault(known.anchor, []).append(place)
    for index, item in enumerate(new):
        if index not in pairs and item.explicit_id is None and waiting.get(item.anchor):
            pairs[index] = waiting[item.anchor].pop(0)


def _by_place(old: Sequence[KnownItem], new: Sequence[Item], pairs: dict[int, int]) -> None:
    """Pair what is left within each gap between two matched neighbours, the likeliest pair first."""
    used = set(pairs.values())
    left_old = [place for place in range(len(old)) if place not in used]
    left_new = [i for i in range(len(new)) if i not in pairs and new[i].explicit_id is None]
    candidates = []
    for index in left_new:
        low = max((pairs[i] for i in range(index - 1, -1, -1) if i in pairs), default=-1) if pairs else -1
        before = next((pairs[i] for i in range(index - 1, -1, -1) if i in pairs), -1)
        after = next((pairs[i] for i in range(index + 1, len(new)) if i in pairs), len(old))
        for place in left_old:
            if before < place < after or (before >= after and place > min(before, low)):
                score = _likeness(old[place], new[index])
                if score >= LIKENESS:
                    candidates.append((-score, index, place))
    for _, index, place in sorted(candidates):
        if index not in pairs and place not in used:
            pairs[index] = place
            used.add(place)


def _likeness(known: KnownItem, item: Item) -> float:
    if known.heading and known.heading == item.heading:
        return 1.0
    matcher = SequenceMatcher(None, known.text[:COMPARED_CHARACTERS], item.text[:COMPARED_CHARACTERS], autojunk=False)
    if matcher.real_quick_ratio() < LIKENESS or matcher.quick_ratio() < LIKENESS:
        return 0.0
    return matcher.ratio()


def new_item_id(task: str, item: Item, taken: Container[str]) -> str:
    """The explicit id, else `g:` and six characters of the content's hash, more where they are taken."""
    if item.explicit_id is not None and item.explicit_id not in taken:
        return item.explicit_id
    seed = f"{task}\0{item.anchor}\0{item.occurrence}".encode()
    characters = base64.b32encode(hashlib.sha256(seed).digest()).decode().lower()
    return next(id for n in range(6, 53) if (id := f"g:{characters[:n]}") not in taken)
