"""What each command after ':' does in the application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainflow_tui import config, language
from trainflow_tui.errors import TrainflowError, UsageError
from trainflow_tui.screens import looks
from trainflow_tui.screens.base import MODE_NAMES
from trainflow_tui.screens.board import BoardScreen
from trainflow_tui.screens.cluster import ClusterScreen
from trainflow_tui.screens.commands import Command, find, the_one, unknown
from trainflow_tui.screens.desk import Child
from trainflow_tui.screens.hotspots import HotspotsScreen
from trainflow_tui.screens.live import LiveScreen
from trainflow_tui.screens.outlets import FORMATS, Outlets
from trainflow_tui.screens.time_cursor import TimeCursor
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import cell_len, display

_SIGNS = (
    ("braille", "⣀⣤⣶⣿⡇⢸⠉⠒⠤"),
    ("blocks", "▁▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"),
    ("ascii", "*+ox#@%& |-"),
    ("unicode", "● ◐ ◉ ✓ ✗ ★ ■ ‖ ◌ ▲ ▼ ▸ ✎ ↺ → ✚ ⌁ │ ┤ …"),
    ("简体中文", "训练 检查点 |"),
)


class CommandTable(Outlets, TimeCursor):
    """Mix in before `Outlets`: the commands, and the line that runs one."""

    def commands(self) -> Sequence[Command]:
        """Every command, in the order of help."""
        return (
            Command("task", "ID", _("make a task the current one"), self._go_task, lambda _r: self._task_ids()),
            Command("new", "TITLE", _("make a task"), self._new),
            Command("node", "NAME", _("show a node"), self._go_node, lambda _r: self._names("nodes", "name")),
            Command("run", "ID", _("show a run"), self._go_run, lambda _r: self._names("runs", "id")),
            Command("trace", "ID", _("show a trace"), self._go_trace, lambda _r: self._names("traces", "id")),
            Command(
                "approval", "ID", _("open a request"), self._go_approval, lambda _r: self._names("approvals", "id")
            ),
            Command("at", "TIME", _("the screens as they were: 14:05, -10m, now"), self.go_to_moment, _moments),
            Command("now", "", _("leave the past"), lambda _r: self.leave_past()),
            Command("add trace", "FILE", _("read a profiler trace"), self._add_trace, self._paths),
            Command("add log", "FILE", _("follow a training log"), self._add_log, self._paths),
            Command("add node", "", _("check this node"), lambda _r: self._add_node()),
            Command("guide", "", _("write guidance for the task"), lambda _r: self.ask_guidance(), None, ("guidance",)),
            Command("edit", "guidance|questions", _("open a human file in the editor"), self._edit, _human_files),
            Command("filter", "WORDS", _("filter the pane"), self._filter),
            Command("sort", "COLUMN", _("sort the pane"), self._sort, lambda _r: self._columns()),
            Command("export", "|".join(FORMATS), _("write the pane into a file"), self._export, lambda _r: FORMATS),
            Command("copy", "", _("copy rows as Markdown"), lambda _r: self.copy_rows()),
            Command("theme", "NAME", _("colours"), self._theme, lambda _r: _choices("theme")),
            Command("glyphs", "unicode|ascii", _("signs"), self._glyphs, lambda _r: _choices("glyphs")),
            Command("markers", "NAME", _("how charts are drawn"), self._markers, lambda _r: _choices("markers")),
            Command("fonts", "", _("which signs your font has"), lambda _r: self._fonts()),
            Command(
                "language", "TAG", _("language of the screens"), self._language, lambda _r: list(language.LANGUAGES)
            ),
            Command("show", "SCREEN", _("go to a screen"), self._show, lambda _r: list(MODE_NAMES)),
            Command("refresh", "", _("collect and read everything now"), lambda _r: self.action_refresh_now()),
            Command("help", "", _("all keys and commands"), lambda _r: self.action_help()),
            Command("quit", "", _("leave"), lambda _r: self.action_leave(), None, ("q",)),
        )

    def run_command(self, words: str) -> None:
        """Do what stands after ':'."""
        words = words.strip()
        if not words:
            return
        try:
            if words in "012345" and len(words) == 1:
                self.action_show_mode(list(MODE_NAMES)[int(words)])
                return
            found = find(self.commands(), words)
            if found is None:
                raise unknown(self.commands(), words)
            found[0].run(found[1])
        except TrainflowError as problem:
            self.tell(problem)

    def action_help(self) -> None:
        """Show every key of this screen."""
        raise NotImplementedError

    def action_leave(self) -> object:
        """Quit."""
        raise NotImplementedError

    def run_child(self, child: Child) -> object:
        """Run a verb as a child process."""
        raise NotImplementedError

    def use_look(self, theme: str | None = None) -> None:
        """Draw everything in this theme, language and alphabet."""
        raise NotImplementedError

    # Places

    def _task_ids(self) -> list[str]:
        return [t.id for t in self.snapshot.tasks] if self.snapshot else []

    def _names(self, nouns: str, field: str) -> list[str]:
        return [getattr(found, field) for found in getattr(self.snapshot, nouns)] if self.snapshot else []

    def _go_task(self, words: str) -> None:
        name = the_one("task", self._task_ids(), words)
        self.choose_task(name)
        self.action_show_mode("board")
        self.call_after_refresh(self._go_to, name)

    def _new(self, words: str) -> None:
        if not words:
            self.ask_new_task()
        elif not self.refused():
            self.make_task(words)

    def _go_node(self, words: str) -> None:
        name = the_one("node", self._names("nodes", "name"), words)
        self.action_show_mode("cluster")
        self.call_after_refresh(self._go_to, name)

    def _go_run(self, words: str) -> None:
        name = the_one("run", self._names("runs", "id"), words)
        self.action_show_mode("live")
        self.call_after_refresh(self._go_to, name)

    def _go_trace(self, words: str) -> None:
        name = the_one("trace", self._names("traces", "id"), words)
        self.action_show_mode("hotspots")
        self.call_after_refresh(self._go_to, name)

    def _go_to(self, name: str) -> None:
        if isinstance(self.screen, BoardScreen | ClusterScreen | LiveScreen | HotspotsScreen):
            self.screen.go_to(name)

    def _go_approval(self, words: str) -> None:
        self.ask_decision(the_one("approval", self._names("approvals", "id"), words))

    def _show(self, words: str) -> None:
        self.action_show_mode(the_one("screen", list(MODE_NAMES), words))

    # Things to take in

    def _add_trace(self, words: str) -> None:
        self._add_file("trace", words)

    def _add_log(self, words: str) -> None:
        self._add_file("log", words)

    def _add_file(self, kind: str, words: str) -> None:
        if self.refused():
            return
        if not words:
            raise UsageError(
                "file-missing", _("add {kind}: which file?").format(kind=kind), next_step=_("tab completes its path.")
            )
        try:
            path = Path(words).expanduser()
        except RuntimeError as problem:
            raise UsageError(
                "file-unknown", f"{problem}", subject=words, next_step=_("tab completes its path.")
            ) from None
        task = ("--task", self.current_task) if self.current_task else ()
        self.run_child(Child((kind, "add", *task, "--", str(path)), say(_("Reading {name}"), name=path.name)))

    def _add_node(self) -> None:
        if not self.refused():
            self.run_child(Child(("node", "check"), say(_("Checking this node"))))

    async def _paths(self, words: str) -> Sequence[str]:
        return await self.desk.paths(words)

    def _edit(self, words: str) -> None:
        self.edit_human_file({"guidance": "GUIDANCE.md", "questions": "QUESTIONS.md"}[the_one("file", _FILES, words)])

    # The focused pane

    def _filter(self, words: str) -> None:
        pane = self._pane()
        if pane is not None:
            is_regex = words.startswith("~")
            pane.filter(words.removeprefix("~"), is_regex=is_regex)
            self.remember()

    def _columns(self) -> list[str]:
        pane = self._pane()
        return [c.key for c in pane.view.columns if c.key] if pane and pane.view else []

    def _sort(self, words: str) -> None:
        from trainflow_tui.screens.pane_view import Sorting

        pane = self._pane()
        if pane is not None:
            pane.sort(Sorting(the_one("column", self._columns(), words) if words else ""))
            self.remember()

    def _export(self, words: str) -> None:
        if words:
            self.export(the_one("format", FORMATS, words))
        else:
            self.ask_export()

    # Looks

    def _theme(self, words: str) -> None:
        self.use_look(the_one("theme", _choices("theme"), words))

    def _glyphs(self, words: str) -> None:
        alphabet = the_one("alphabet", _choices("glyphs"), words)
        chosen = self.desk.settings.markers if looks.markers() == "ascii" else looks.markers()
        looks.use_signs(glyphs=alphabet, markers=chosen)
        self.use_look()

    def _markers(self, words: str) -> None:
        looks.use_signs(glyphs=looks.glyphs(), markers=the_one("marker", _choices("markers"), words))
        self.use_look()

    def _language(self, words: str) -> None:
        language.use(the_one("language", list(language.LANGUAGES), words))
        self.use_look()

    def _fonts(self) -> None:
        lines = [
            _("A line of boxes, question marks or hollow dots: your font lacks those signs."),
            _("Choose others with :markers and :glyphs, and for good in trainflow.toml."),
            "",
            *(f"{name}{' ' * (10 - cell_len(name))} {signs}" for name, signs in _SIGNS),
            "",
            _("The bars below must stand in one line:"),
            "abcdefgh|",
            "训练检查|",
            "●✓✗◐▲★→…|",
        ]
        self.read(say(_("Signs")), display("\n".join(lines), multiline=True))

    def choose_task(self, id: str) -> None:
        """Make a task the current one."""
        raise NotImplementedError


_FILES = ("guidance", "questions")


def _human_files(_rest: str) -> Sequence[str]:
    return _FILES


def _moments(_rest: str) -> Sequence[str]:
    return ("-10m", "-1h", "-1d", "now")


def _choices(key: str) -> Sequence[str]:
    return next(field.choices for field in config.FIELDS if field.key == key)
