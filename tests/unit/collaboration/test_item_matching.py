"""Items keep their identity through what a person does to a file between two collections."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.collaboration.guidance_file import Item, parse_guidance
from trainflow_tui.collaboration.item_matching import KnownItem, Match, MatchKind, match_items, new_item_id


def parsed(text: str) -> list[Item]:
    return parse_guidance(text, template="").items


def known(items: list[Item], ids: list[str] | None = None) -> list[KnownItem]:
    """The items as they would be stored; ids as the ledger would give them."""
    taken: set[str] = set()
    found = []
    for position, item in enumerate(items, 1):
        id = ids[position - 1] if ids else new_item_id("task", item, taken)
        taken.add(id)
        found.append(KnownItem(id=id, anchor=item.anchor, heading=item.heading, text=item.text, position=position))
    return found


def by_heading(matches: list[Match]) -> dict[str, tuple[str, str | None]]:
    return {match.item.heading: (match.kind.value, match.known_id) for match in matches}


THREE = "## Rate\nuse a lower learning rate\n\n## Data\nleave the second shard out\n\n## Node\nwatch node seven\n"


def test_an_unchanged_file_gives_the_same_items():
    matches = match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(THREE))
    assert [(m.kind, m.known_id) for m in matches] == [
        (MatchKind.SAME, "a"),
        (MatchKind.SAME, "b"),
        (MatchKind.SAME, "c"),
    ]


def test_moved_items_are_the_same():
    turned = "## Node\nwatch node seven\n\n## Rate\nuse a lower learning rate\n\n## Data\nleave the second shard out\n"
    matches = match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(turned))
    assert [(m.kind, m.known_id) for m in matches] == [("same", "c"), ("same", "a"), ("same", "b")]


def test_a_reworded_item_between_its_neighbours_is_a_revision():
    reworded = THREE.replace("leave the second shard out", "leave the second and third shard out")
    found = by_heading(match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(reworded)))
    assert found == {"Rate": ("same", "a"), "Data": ("revised", "b"), "Node": ("same", "c")}


def test_the_same_heading_in_the_same_place_is_a_revision_whatever_is_below_it():
    reworded = THREE.replace(
        "leave the second shard out", "everything was reloaded; nothing more to be done about this"
    )
    found = by_heading(match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(reworded)))
    assert found["Data"] == ("revised", "b")


def test_another_text_in_the_same_place_is_a_new_item():
    other = THREE.replace("## Data\nleave the second shard out", "## Checkpoints\nkeep only the newest four")
    found = by_heading(match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(other)))
    assert found == {"Rate": ("same", "a"), "Checkpoints": ("new", None), "Node": ("same", "c")}


def test_similarity_counts_at_six_tenths_of_the_words_and_not_below():
    # 10 words; 6 and then 5 of them are equal in order.
    before, at_limit, below = "## a b\nc d e f g h i j", "## a z\nc d e f g u v w", "## a z\nc d e f x u v w"
    assert match_items(known(parsed(before), ["i"]), parsed(at_limit))[0].known_id == "i"
    assert match_items(known(parsed(before), ["i"]), parsed(below))[0].known_id is None


def test_short_headings_do_not_look_alike():
    assert match_items(known(parsed("## Rate"), ["i"]), parsed("## Data"))[0].known_id is None


def test_chinese_text_is_compared_by_characters():
    before, after = "把学习率降低到一半然后再试一次", "把学习率降低到四分之一然后再试一次"
    assert match_items(known(parsed(before), ["i"]), parsed(after))[0].kind == "revised"


def test_an_explicit_id_decides_against_text_and_place():
    before = "## G1 Rate\nlower it\n\n## G2 Data\nskip shard two\n"
    after = "## G2 Rate\nlower it\n\n## G1 Something else\nentirely\n"
    matches = match_items(known(parsed(before)), parsed(after))
    assert [(m.kind.value, m.known_id) for m in matches] == [("revised", "G2"), ("revised", "G1")]


def test_an_id_that_is_not_known_makes_a_new_item():
    matches = match_items(known(parsed("## Rate\nlower it"), ["g:abcdef"]), parsed("## G9 Rate\nlower it"))
    assert (matches[0].kind, matches[0].known_id) == (MatchKind.NEW, None)
    assert new_item_id("task", matches[0].item, {"g:abcdef"}) == "G9"


def test_an_item_that_loses_its_mark_stays_the_same():
    matches = match_items(known(parsed("## G1 Rate\nlower it")), parsed("## Rate\nlower it"))
    assert (matches[0].kind, matches[0].known_id) == (MatchKind.SAME, "G1")


def test_cosmetic_changes_are_no_revision():
    saved_on_windows = "\ufeff" + THREE.replace("\n", "  \r\n")
    kinds = {m.kind for m in match_items(known(parsed(THREE)), parsed(saved_on_windows))}
    assert kinds == {MatchKind.SAME}


def test_a_split_item_keeps_its_id_on_one_half():
    before = "## Rate\nlower the rate to half of it now\nand tell me the loss after one hundred steps\n"
    after = "## Rate\nlower the rate to half of it now\n\n## Loss\nand tell me the loss after one hundred steps\n"
    found = by_heading(match_items(known(parsed(before), ["a"]), parsed(after)))
    assert found == {"Rate": ("revised", "a"), "Loss": ("new", None)}


def test_merged_items_keep_one_of_their_ids():
    after = THREE.replace("\n\n## Data", "")
    matches = match_items(known(parsed(THREE), ["a", "b", "c"]), parsed(after))
    assert [m.known_id for m in matches] == ["a", "c"]


def test_copies_are_told_apart_by_their_order():
    twice = "## Rate\nlower it\n\n## Rate\nlower it\n"
    ids = [k.id for k in known(parsed(twice))]
    assert len(set(ids)) == 2
    assert [m.known_id for m in match_items(known(parsed(twice)), parsed(twice))] == ids


def test_an_id_follows_from_the_text_and_gives_way_to_a_taken_one():
    item = parsed("## Rate\nlower it")[0]
    id = new_item_id("task", item, set())
    assert id == new_item_id("task", item, set())
    assert len(id) == len("g:") + 6
    longer = new_item_id("task", item, {id})
    assert longer.startswith(id)
    assert len(longer) == len(id) + 1
    assert new_item_id("other task", item, set()) != id


def test_an_explicit_id_of_another_item_is_not_given_twice():
    item = parsed("## [g:abcdef] Rate")[0]
    assert new_item_id("task", item, {"g:abcdef"}).startswith("g:")
    assert new_item_id("task", item, {"g:abcdef"}) != "g:abcdef"


def test_a_rewritten_file_of_2000_items_is_matched():
    # All items reworded at once leave no anchor to go by; the work must stay bounded.
    before = "\n".join(f"## Item {n}\nplease change setting {n} of the run to a smaller value" for n in range(2000))
    after = before.replace("a smaller value", "some larger value")
    matches = match_items(known(parsed(before)), parsed(after))
    assert [m.known_id for m in matches] == [k.id for k in known(parsed(before))]


texts = st.lists(
    st.sampled_from(["## a\nx y z", "## a\nx y w", "## G1 b\nx", "## G2 a\nx y z", "## c", "## a\nq"]), max_size=8
)


@given(texts, texts)
@settings(max_examples=300, deadline=None)
def test_no_known_item_is_matched_twice_and_every_item_of_the_file_once(before, after):
    old, new = known(parsed("\n".join(before))), parsed("\n".join(after))
    matches = match_items(old, new)
    assert [m.item for m in matches] == new
    met = [m.known_id for m in matches if m.known_id is not None]
    assert len(met) == len(set(met))
    assert set(met) <= {k.id for k in old}
    for match in matches:
        if match.item.explicit_id in {k.id for k in old}:
            assert match.known_id == match.item.explicit_id
        assert (match.kind == MatchKind.NEW) == (match.known_id is None)


# Random edit scripts. `_Wish` is the independent record of which item is which.

WORDS = [
    "".join(pair)
    for pair in itertools.product(
        ["ba", "ce", "di", "fo", "gu", "la", "me", "ni"],
        ["lan", "mer", "tik", "nos", "pra", "vel", "dun", "gis", "rob", "fet", "wos", "hul", "zim", "cab"],
    )
]


class _Wish:
    def __init__(self, rnd: random.Random, label: str | None = None):
        self.heading = rnd.sample(WORDS, rnd.randint(1, 4))
        self.body = rnd.choices(WORDS, k=rnd.randint(4, 40))
        self.label = label
        self.touched: set[str] = set()

    def copy(self) -> "_Wish":
        twin = object.__new__(_Wish)
        twin.heading, twin.body, twin.label, twin.touched = list(self.heading), list(self.body), None, {"copied"}
        return twin

    def text(self) -> str:
        lines = [" ".join(self.body[i : i + 8]) for i in range(0, len(self.body), 8)]
        return "\n".join([f"## {self.label + ' ' if self.label else ''}{' '.join(self.heading)}", *lines, ""])


def reword(wish: _Wish, rnd: random.Random) -> None:
    words = wish.heading + wish.body
    for place in rnd.sample(range(len(words)), k=rnd.randint(1, max(1, int(0.4 * len(words))))):
        words[place] = rnd.choice(WORDS)
    wish.heading, wish.body = words[: len(wish.heading)], words[len(wish.heading) :]
    wish.touched.add("reworded")


def edit(wishes: list[_Wish], rnd: random.Random) -> list[_Wish]:
    wishes = list(wishes)
    for _ in range(rnd.randint(1, max(2, len(wishes) // 4))):
        place = rnd.randrange(len(wishes))
        operation = rnd.choice(["insert", "move", "split", "merge", "reword", "reword", "delete", "duplicate"])
        if operation == "insert":
            wishes.insert(rnd.randint(0, len(wishes)), _Wish(rnd))
        elif operation == "move":
            wishes[place].touched.add("moved")
            wishes.insert(rnd.randint(0, len(wishes) - 1), wishes.pop(place))
        elif operation == "split" and len(wishes[place].body) >= 8:
            second = wishes[place].copy()
            second.heading, second.body = rnd.sample(WORDS, 2), second.body[len(second.body) // 2 :]
            del wishes[place].body[len(wishes[place].body) // 2 :]
            wishes[place].touched.add("split")
            wishes.insert(place + 1, second)
        elif operation == "merge" and place + 1 < len(wishes):
            wishes[place].body += wishes.pop(place + 1).body
            wishes[place].touched.add("merged")
        elif operation == "reword" and not wishes[place].touched:
            reword(wishes[place], rnd)
        elif operation == "delete" and len(wishes) > 2:
            wishes.pop(place)
        elif operation == "duplicate":
            wishes[place].touched.add("copied")
            wishes.insert(rnd.randint(0, len(wishes)), wishes[place].copy())
    return wishes


def run_script(seed: int, tally: Counter[str]) -> None:
    rnd = random.Random(seed)
    before = [_Wish(rnd, label=f"G{n}" if rnd.random() < 0.2 else None) for n in range(rnd.randint(3, 30))]
    old = known(parsed("\n".join(w.text() for w in before)))
    ids = {id(wish): k.id for wish, k in zip(before, old, strict=True)}
    after = edit(before, rnd)
    matches = match_items(old, parsed("\n".join(w.text() for w in after)))
    met = [m.known_id for m in matches if m.known_id is not None]
    assert len(met) == len(set(met)), f"seed {seed}: one item for two"
    for wish, match in zip(after, matches, strict=True):
        own = ids.get(id(wish))
        if wish.label:
            assert match.known_id == own == wish.label, f"seed {seed}: explicit id lost"
        elif own is None:
            if not wish.touched & {"copied", "merged"}:
                assert match.known_id is None, f"seed {seed}: a new item taken for {match.known_id}"
        elif not wish.touched & {"merged", "copied"}:
            assert match.known_id in (own, None), f"seed {seed}: {own} taken for {match.known_id}"
            if "split" not in wish.touched:
                kind = "reworded and moved" if wish.touched == {"reworded", "moved"} else "all"
                tally[kind] += 1
                tally[f"{kind} matched"] += match.known_id == own


def check_scripts(seeds: range) -> None:
    tally: Counter[str] = Counter()
    for seed in seeds:
        run_script(seed, tally)
    print(dict(tally), f"{tally['all matched'] / tally['all']:.4f}")
    assert tally["all"] > 8 * len(seeds)
    assert tally["all matched"] >= 0.97 * tally["all"]


def test_edit_scripts_keep_97_of_100_items_all_explicit_ids_and_never_take_one_for_another():
    check_scripts(range(400))


@pytest.mark.long
def test_10000_edit_scripts_do():
    check_scripts(range(1000, 11000))
