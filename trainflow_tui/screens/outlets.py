"""What leaves the screen: copies, exports, the editor and the pager."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work

from trainflow_tui.clock import to_iso
from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.pane_view import Sorting
from trainflow_tui.screens.requests import Requests
from trainflow_tui.screens.views.detail import detail
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display, display

if TYPE_CHECKING:
    from trainflow_tui.screens import exports
    from trainflow_tui.screens.widgets.patched_table import Row

FORMATS = ("csv", "json", "md", "svg")


class Outlets(Requests):
    """Mix in before `Requests`: nothing here changes the workspace, but for the human files, which are the human's."""

    # Sorting is asked for in the same kind of dialog.

    def ask_sorting(self) -> None:
        """Let the column be chosen by which the focused pane is sorted."""
        self.hold_keys()
        self._choose_sorting()

    @work(group="dialog", exit_on_error=False)
    async def _choose_sorting(self) -> None:
        from trainflow_tui.screens.dialogs.choice import Choice, ChoiceDialog

        pane = self._pane()
        if pane is None or pane.view is None:
            self.release_keys()
            return
        columns = [c for c in pane.view.columns if c.key]
        choices = [Choice("0", say(_("As it comes")), "")]
        choices += [
            Choice(str(n), say("{name}", name=c.label.strip() or c.key), c.key) for n, c in enumerate(columns[:9], 1)
        ]
        about = say(_("The same column again turns the order round."))
        answer = await self.answer_of(
            ChoiceDialog(say(_("Sort {pane} by"), pane=pane.view.title), about, tuple(choices))
        )
        if answer is not None:
            again = answer == pane.sorting.key
            pane.sort(Sorting(answer, not pane.sorting.reverse if again else False))
            self.remember()

    # Copies

    def ask_cell(self) -> None:
        """Let a cell of the row under the cursor be chosen and copy it."""
        self.hold_keys()
        self._choose_cell()

    @work(group="dialog", exit_on_error=False)
    async def _choose_cell(self) -> None:
        from trainflow_tui.screens.dialogs.choice import Choice, ChoiceDialog

        pane = self._pane()
        row = pane.selected_row() if pane else None
        if pane is None or pane.view is None or row is None:
            self.release_keys()
            return
        named = [(c, v) for c, v in zip(pane.view.columns, row.values, strict=False) if c.key]
        whole = detail(self.snapshot, str(pane.id), row.key) if self.snapshot else None
        choices = [
            Choice(str(n), say("{name}: {value}", name=c.label.strip() or c.key, value=_short(v)), str(n))
            for n, (c, v) in enumerate(named[:9], 1)
        ]
        if whole is not None:
            choices.append(Choice("f", say(_("The full text, {n} characters"), n=len(whole[1])), "f"))
        choices.append(Choice("r", say(_("The row as Markdown")), "r"))
        answer = await self.answer_of(
            ChoiceDialog(say(_("Copy")), say(_("Whole values, not what fits the column.")), tuple(choices))
        )
        if answer == "f" and whole is not None:
            self._copy(whole[1])
        elif answer == "r":
            self.copy_rows()
        elif answer is not None:
            value = named[int(answer) - 1][1]
            self._copy("" if value is None else str(value))

    def copy_rows(self) -> None:
        """Copy the row under the cursor, or the marked ones, as Markdown."""
        from trainflow_tui.screens import exports

        pane = self._pane()
        row = pane.selected_row() if pane else None
        if pane is None or row is None:
            return
        if pane.marks:
            self._copy(self._table_of(pane).as_markdown())
        else:
            table = self._table_of(pane, (row,))
            self._copy(exports.row_as_markdown(table.labels, ["" if v is None else str(v) for v in table.rows[0]]))

    def action_copy_selection(self) -> None:
        """Copy what is selected with the mouse; without a selection say how to quit."""
        selected = self.screen.get_selected_text()
        if selected:
            self._copy(selected)
        else:
            self.notify(_("Nothing is selected. q quits, y copies a cell."), timeout=3, markup=False)

    @work(group="copy", exit_on_error=False)
    async def _copy(self, text: str) -> None:
        from trainflow_tui.screens import clipboard

        where, folder = self.desk.settings.clipboard, self._folder("copies")
        try:
            # In a thread: inside tmux it is tmux that takes the text.
            copied = await asyncio.to_thread(
                clipboard.copy, self, text, to=where, folder=folder, now=self.desk.clock.now()
            )
        except TrainflowError as problem:
            self.tell(problem)
            return
        words = say(_("Copied {n} characters to the terminal's clipboard."), n=copied.characters)
        if copied.path is not None:
            words = say(_("Copied {n} characters into {path}"), n=copied.characters, path=str(copied.path))
        if copied.why == "may-be-dropped":
            words = say(_("{words} A tmux on the way takes it only with `set-clipboard on`."), words=words)
        if copied.redacted:
            words = say(_("{words} {n} secrets left out."), words=words, n=copied.redacted)
        self.done(words)

    # Exports

    def ask_export(self) -> None:
        """Let a format be chosen and write the focused pane into a file."""
        self.hold_keys()
        self._choose_export()

    @work(group="dialog", exit_on_error=False)
    async def _choose_export(self) -> None:
        from trainflow_tui.screens.dialogs.choice import Choice, ChoiceDialog

        pane = self._part()
        if pane is None:
            self.release_keys()
            return
        words = {
            "csv": _("CSV, values as they are"),
            "json": _("JSON"),
            "md": _("Markdown table"),
            "svg": _("SVG picture of the whole screen"),
        }
        choices = tuple(Choice(str(n), say("{w}", w=words[name]), name) for n, name in enumerate(FORMATS, 1))
        about = say(_("Into {folder}"), folder=str(self._folder("exports")))
        answer = await self.answer_of(ChoiceDialog(say(_("Export")), about, choices))
        if answer is not None:
            self.export(answer)

    def export(self, kind: str) -> None:
        """Write the focused pane, or a picture of the screen, into a file and say where."""
        from trainflow_tui.screens import exports

        part = self._part()
        if part is None:
            return
        table = self._table_of(part, () if kind == "svg" else None)
        if kind == "svg":
            facts = {
                "title": table.title,
                "source": table.source,
                "as_of": table.as_of,
                "exported_at": table.exported_at,
            }
            text = exports.svg_with_facts(self.export_screenshot(title="trainflow"), facts | {"filter": table.filter})
        else:
            text = {"csv": table.as_csv, "json": table.as_json, "md": table.as_markdown}[kind]()
        self._write_export(f"{self.current_mode}-{part.id}", f".{kind}", text)

    @work(group="export", exit_on_error=False)
    async def _write_export(self, stem: str, suffix: str, text: str) -> None:
        from trainflow_tui.screens import exports

        folder = self._folder("exports")
        try:
            path = await self.desk.run(lambda w: exports.write_export(folder, stem, suffix, text, now=w.clock.now()))
        except TrainflowError as problem:
            self.tell(problem)
            return
        self.done(say(_("Written: {path}"), path=str(path)))

    def _table_of(self, part: ListPane | LineChart, rows: tuple[Row, ...] | None = None) -> exports.ExportTable:
        from trainflow_tui.screens import exports

        if isinstance(part, LineChart):
            return self._chart_table(part)
        view = part.view
        assert view is not None
        taken = part.taken_rows() if rows is None else rows
        kept = [n for n, c in enumerate(view.columns) if c.key]
        as_of = view.as_of
        return exports.ExportTable(
            title=view.title,
            keys=tuple(view.columns[n].key for n in kept),
            labels=tuple(view.columns[n].label.strip() or view.columns[n].key for n in kept),
            rows=tuple(tuple(r.values[n] for n in kept) for r in taken),
            source=as_of.source if as_of else "",
            as_of=self.moment or (as_of.at if as_of else ""),
            exported_at=self._stamp(),
            filter=("~" if part.row_filter.is_regex else "") + part.row_filter.text,
            sorting=f"{part.sorting.key}{' reversed' if part.sorting.reverse else ''}",
            total_rows=len(view.rows),
        )

    def _chart_table(self, chart: LineChart) -> exports.ExportTable:
        from trainflow_tui.screens import exports

        view = chart.view
        points = [
            (series.name, x, y)
            for series in (view.series if view else ())
            for x, y in zip(series.x, series.y, strict=True)
        ]
        return exports.ExportTable(
            title=view.title if view else "",
            keys=("series", "step", "value"),
            labels=(_("Series"), _("Step"), _("Value")),
            rows=tuple(points),
            source=view.as_of[0] if view and view.as_of else "",
            as_of=self.moment,
            exported_at=self._stamp(),
            filter="",
            sorting="step",
            total_rows=len(points),
        )

    def _stamp(self) -> str:
        return to_iso(self.desk.clock.now())

    def _folder(self, name: str) -> Path:
        return self.desk.root / name

    # Editor and pager

    def edit_human_file(self, name: str) -> None:
        """Open GUIDANCE.md or QUESTIONS.md of the current task in the editor; what is saved is collected at once."""
        from trainflow_tui.screens import outside

        if self.refused():
            return
        if not self.current_task:
            self.notify(_("Make a task first: n on the board."), severity="warning", markup=False)
            return
        try:
            outside.edit(self, self.desk.root / "collaboration" / self.current_task / name)
        except TrainflowError as problem:
            self.tell(problem)
            return
        self.action_refresh_now()

    def action_refresh_now(self) -> None:
        """Run one round of everything."""
        raise NotImplementedError

    def page_detail(self) -> None:
        """Open the whole text of the row under the cursor in the pager; without one, in the reading dialog."""
        from trainflow_tui.screens import outside

        pane = self._pane()
        key = pane.selected if pane else None
        if pane is None or key is None or self.snapshot is None:
            return
        row = pane.selected_row()
        plain = "\n".join(str(v) for v in row.values if v is not None) if row else ""
        title, text = detail(self.snapshot, str(pane.id), key) or (key, plain)
        try:
            outside.page(self, title, f"{title}\n\n{text}")
        except TrainflowError:
            self.read(display(title), display(text, multiline=True, max_cells=100_000))

    def _part(self) -> ListPane | LineChart | None:
        return self.screen.focused_part() if isinstance(self.screen, ModeScreen) else None

    def _pane(self) -> ListPane | None:
        return self.screen.focused_pane() if isinstance(self.screen, ModeScreen) else None


def _short(value: object) -> Display:
    return display("—" if value is None else str(value), max_cells=48)
