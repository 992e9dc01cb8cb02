"""Exports are read back by independent readers: the csv module, json, a GitHub-like Markdown parser, an XML parser."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from textual.app import App
from textual.widgets import Static

from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.exports import ExportTable, row_as_markdown, svg_with_facts, write_export
from trainflow_tui.text import display

NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TABLE = ExportTable(
    title="Hot-spots, rank 0",
    keys=("kernel", "window_ns", "share", "note"),
    labels=("Kernel", "Window", "share", ""),
    rows=(
        ("ncclDevKernel_AllReduce_Sum_bf16", 1767225600123456789, 0.25, None),
        ("void gemm<float, 4>(T*, T)", -5, float("nan"), "等待 通信"),
        ("=HYPERLINK(\"http://x\",\"y\")", 0, float("-inf"), "a\nb\tc"),
    ),
    source="nv_a100_triton.json.gz",
    as_of="2026-03-04T11:59:00.000000Z",
    exported_at="2026-03-04T12:00:00.000000Z",
    filter="!nccl",
    sorting="window_ns, largest first",
    total_rows=431,
)  # fmt: skip
FACTS = ("title", "source", "as_of", "exported_at", "filter", "sorting", "total_rows")


def with_cell(cell):
    return replace(TABLE, keys=("a", "b"), labels=("A", "B"), rows=((cell, 1),))


def read_csv(text):
    """The `#` lines, and the rows behind them."""
    lines = text.split("\r\n")
    heads = [line for line in lines[: len(FACTS)] if line.startswith("# ")]
    return heads, list(csv.reader("\r\n".join(lines[len(heads) :]).splitlines(keepends=True), strict=True))


# CSV


def test_csv_has_the_facts_the_keys_and_the_rows():
    heads, rows = read_csv(TABLE.as_csv())
    assert [head.split(": ")[0].removeprefix("# ") for head in heads] == list(FACTS)
    assert "# source: nv_a100_triton.json.gz" in heads
    assert "# total_rows: 431" in heads
    assert rows[0] == ["kernel", "window_ns", "share", "note"]
    assert rows[1] == ["ncclDevKernel_AllReduce_Sum_bf16", "1767225600123456789", "0.25", ""]
    assert rows[2] == ["void gemm<float, 4>(T*, T)", "-5", "NaN", "等待 通信"]
    assert rows[3][2] == "-Infinity"


def test_csv_numbers_are_bare_and_texts_quoted():
    assert ',-5,NaN,"等待 通信"\r\n' in TABLE.as_csv()


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "  =1", "\n=1", "＝1", "-cmd|'/c calc'!A0", "=\x00", "--"],
)
def test_csv_runs_no_formula(cell):
    first = read_csv(with_cell(cell).as_csv())[1][1][0]
    assert first.startswith("'")


@pytest.mark.parametrize("cell", ["-5", "-1.5e-4", "12", "3.0"])
def test_csv_leaves_numbers_that_are_texts(cell):
    assert read_csv(with_cell(cell).as_csv())[1][1][0] == cell


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_facts_run_no_formula_in_a_second_cell(separator):
    facts = replace(TABLE, source=f'x{separator}=1{separator} "@y', filter=f"{separator}+z").as_csv().split("\r\n")
    for line in facts[: len(FACTS)]:
        for cell in re.split(r"[,;|\t]", line):
            assert cell.strip(' "')[:1] not in ("=", "+", "-", "@")


@given(st.lists(st.tuples(st.text(), st.integers() | st.none() | st.floats(allow_nan=False)), max_size=4))
def test_csv_is_read_back_whatever_it_holds(rows):
    text = replace(TABLE, keys=("a", "b"), labels=("A", "B"), rows=tuple(rows)).as_csv()
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    _heads, found = read_csv(text)
    assert len(found) == len(rows) + 1
    for (cell, number), (shown, digits) in zip(rows, found[1:], strict=True):
        wanted = display(cell, multiline=True, whole=True, max_cells=10**7)
        assert shown.replace("\r\n", "\n").removeprefix("'") == wanted.removeprefix("'")
        assert digits == "" if number is None else float(digits) == float(number)


# JSON


def test_json_has_the_facts_and_the_rows_as_objects():
    found = json.loads(TABLE.as_json())
    assert found.pop("rows") == [
        {"kernel": TABLE.rows[0][0], "window_ns": 1767225600123456789, "share": 0.25, "note": None},
        {"kernel": TABLE.rows[1][0], "window_ns": -5, "share": "NaN", "note": "等待 通信"},
        {"kernel": TABLE.rows[2][0], "window_ns": 0, "share": "-Infinity", "note": "a\nb\tc"},
    ]
    assert found == {"schema": "export/1"} | {name: getattr(TABLE, name) for name in FACTS}


@given(st.text(st.characters(exclude_categories=())))
def test_json_keeps_every_character_and_holds_none_that_is_not_seen(text):
    written = with_cell(text).as_json()
    assert json.loads(written)["rows"][0]["a"] == text
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]", written
    )
    written.encode()


def test_json_is_readable_chinese():
    assert "等待 通信" in TABLE.as_json()


# Markdown


class Seen(HTMLParser):
    """Which elements a page has, and the text of each table cell or list item."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th", "li"):
            self.texts.append("")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data


def rendered(text):
    return Seen(MarkdownIt("gfm-like", {"html": True}).render(text))


OF_A_TABLE = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
HOSTILE = [
    "a|b",
    "a\\|b",
    "\\",
    "`x`",
    "``` x",
    "<script>alert(1)</script>",
    "<!-- x",
    "[y](javascript:alert)",
    "![y](http://x/y.png)",
    "http://evil.example/x?y=1",
    "www.evil.example",
    "evil.example",
    "mail@evil.example",
    "@everyone #17",
    "**bold** _it_ ~~gone~~ $x$",
    "&amp; &lt;",
    "a\nb",
    "\n\n# head",
    "| --- |",
    "\x1b]8;;http://x\x1b\\y",
    "a_b_c __d__",
    "[x]: http://y",
    "`|http://x`",
]


@pytest.mark.parametrize("cell", HOSTILE)
def test_markdown_shows_foreign_text_and_nothing_else(cell):
    seen = rendered(with_cell(cell).as_markdown())
    assert set(seen.tags) <= OF_A_TABLE
    assert seen.texts[2].strip() == display(cell, whole=True).strip()
    assert len(seen.texts) == 4
    listed = rendered(row_as_markdown(("B", ""), ("x", cell)))
    assert set(listed.tags) <= {"ul", "li", "strong", "code"}
    assert listed.texts[1].strip() == display(cell.strip(), whole=True).strip()


@given(st.text(alphabet=st.sampled_from("|\\`*_[]()<>!#~$&@:/.-+=w h1\n") | st.characters(), max_size=24))
def test_markdown_shows_any_text(cell):
    seen = rendered(with_cell(cell).as_markdown())
    assert set(seen.tags) <= OF_A_TABLE
    assert "".join(seen.texts[2].split()) == "".join(display(cell, whole=True).split())
    assert len(seen.texts) == 4


def test_markdown_names_units_counts_and_the_source():
    text = TABLE.as_markdown()
    assert "| kernel | Window (window_ns) | share | note |" in text
    assert "|---|---:|---:|---|" in text
    assert text.startswith("**Hot-spots, rank 0**\n\n|")
    assert "\n3 of 431 rows · source: " in text
    for fact in ("nv\\_a100", "!nccl", "window_ns, largest first", "2026-03-04T12:00:00"):
        assert fact.replace("\\", "") in text.replace("`", "")


def test_a_row_is_a_list_without_what_is_empty():
    assert row_as_markdown(("", "Node", "Age", "Note"), ("●", "dcu-03", "", "a*b")) == (
        "- ●\n- **Node**: dcu-03\n- **Note**: a\\*b\n"
    )


@pytest.mark.parametrize("sign", ["#", "+", "-", "1. x", "=", "> x", "- x", "# x", "1) x"])
def test_a_sign_without_a_heading_starts_nothing(sign):
    seen = rendered(row_as_markdown(("", "B"), (sign, "x")))
    assert set(seen.tags) == {"ul", "li", "strong"}
    assert seen.tags.count("li") == 2
    assert seen.texts[0].strip() == sign


# Secrets


def test_no_form_holds_a_secret():
    table = replace(
        TABLE, rows=((f"token {SECRET}", 1, 1.0, "password=hunter2"),), source=f"https://u:{SECRET}@x", filter=SECRET
    )
    assert table.secrets == 4
    for text in (table.as_csv(), table.as_json(), table.as_markdown(), row_as_markdown(("A",), (SECRET,))):
        assert SECRET not in text
        assert "hunter2" not in text
        assert "[redacted:" in text.replace("\\", "")


# SVG


class OneLine(App):
    def __init__(self, words):
        super().__init__()
        self.words = words

    def compose(self):
        yield Static(self.words, markup=False)


async def picture(words):
    app = OneLine(words)
    async with app.run_test(size=(100, 6)):
        return app.export_screenshot(title="x")


async def test_the_picture_has_its_facts_and_reaches_nowhere():
    facts = {"title": "Live <x> & y", "source": "run-7 \x1b[0m", "as_of": "2026-03-04T11:59:00Z", "filter": ""}
    text = svg_with_facts(await picture(f"loss 4.1 学习 <b> https://x {SECRET} password: hunter22"), facts)
    root = ElementTree.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{name}svg"
    assert root.find(f"{name}title").text == "Live <x> & y"
    assert root.find(f"{name}desc").text == "source: run-7 ␛[0m\nas_of: 2026-03-04T11:59:00Z"
    assert json.loads(root.find(f"{name}metadata").text) == {
        "schema": "export/1",
        "title": "Live <x> & y",
        "source": "run-7 ␛[0m",
        "as_of": "2026-03-04T11:59:00Z",
    }
    words = " ".join("".join(root.itertext()).split())
    assert "loss 4.1 学习 <b> https://x [redacted:github] password: [redacted:password]" in words
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("https://x", "")
    for outside in ("@font-face", "@import", "href", "url(h", "url(&quot;"):
        assert outside not in text


@pytest.mark.parametrize(
    "inside",
    [
        '<a href="http://x"><text>y</text></a>',
        '<script>alert(1)</script><rect onclick="x()"/>',
        '<image href="http://x/y.png"/>',
        "<style>@import url(http://x); a { fill: url('http://x') }</style>",
        '<rect fill="url(http://x#y)"/>',
        "<text>\x00\x0b\ufffe</text>",
    ],
)
def test_what_reaches_outside_is_taken_out_of_any_picture(inside):
    text = svg_with_facts(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>', {"title": "t"})
    ElementTree.fromstring(text)
    assert "http://x" not in text
    assert "alert" not in text
    assert "onclick" not in text


def test_what_is_no_picture_is_refused():
    for text in ("<p/>", "no", "<svg>"):
        with pytest.raises(TrainflowError, match="screenshot"):
            svg_with_facts(text, {})


# Files


@pytest.fixture
def umask():
    old = os.umask(0)
    yield
    os.umask(old)


def test_a_file_is_private_new_and_numbered(tmp_path, umask):
    folder = tmp_path / "a" / "exports"
    paths = [write_export(folder, "Hot spots/rank 0", ".csv", data, now=NOW) for data in ("1", "2", "3")]
    assert [p.name for p in paths] == [f"Hot-spots-rank-0-20260304T120000Z{n}.csv" for n in ("", "-2", "-3")]
    assert [p.read_text() for p in paths] == ["1", "2", "3"]
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in paths)


@pytest.mark.parametrize(
    "stem", ["../../etc/passwd", "", "...", "-rf *", "\x1b[2J", "a\nb", "C:\\x", "字" * 200, "x" * 999]
)
def test_a_name_stays_in_its_folder(tmp_path, stem):
    path = write_export(tmp_path / "e", stem, "json", "{}", now=NOW)
    assert path.parent == tmp_path / "e"
    assert path.exists()
    assert re.fullmatch(r"[\w.-]+", path.name)
    assert path.name[0] not in ".-"


def test_a_link_in_the_way_is_not_followed(tmp_path):
    folder = tmp_path / "e"
    folder.mkdir(mode=0o700)
    target = tmp_path / "target"
    (folder / "x-20260304T120000Z.csv").symlink_to(target)
    assert write_export(folder, "x", "csv", "1", now=NOW).name == "x-20260304T120000Z-2.csv"
    assert not target.exists()
    (tmp_path / "linked").symlink_to(folder)
    with pytest.raises(TrainflowError, match="symbolic link"):
        write_export(tmp_path / "linked", "x", "csv", "1", now=NOW)


@pytest.mark.parametrize(("number", "step"), [(errno.ENOSPC, "Make room"), (errno.EROFS, "may write to")])
def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path, monkeypatch, number, step):
    def refuse(*_given):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("trainflow_tui.files.os.write", refuse)
    with pytest.raises(TrainflowError, match=step) as problem:
        write_export(tmp_path / "e", "x", "csv", "1", now=NOW)
    assert problem.value.subject == str(tmp_path / "e" / "x-20260304T120000Z.csv")
    assert os.strerror(number) in problem.value.message
    assert list((tmp_path / "e").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named():
    if not Path("/proc/self").exists():
        pytest.skip("no file system here refuses root a folder")
    with pytest.raises(TrainflowError, match="/proc/trainflow"):
        write_export(Path("/proc/trainflow/e"), "x", "csv", "1", now=NOW)
