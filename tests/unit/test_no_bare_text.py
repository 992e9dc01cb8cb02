"""No bare string reaches a widget: a reading of the screens' source that needs no screen.

Textual reads a string as markup, so a log line with brackets could vanish, end the app or carry a click. A widget may be
given literals, our own translated sentences, `Text` and `Content`; the few sinks that take no markup also `Display`.
A name counts as what it is annotated as, or as what is assigned to it; anything unknown is a finding.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "trainflow_tui"
BELOW_THE_WIDGETS = {"paced_driver.py", "frugal_frames.py", "slow_link.py"}
"""What handles bytes and cells that were drawn already: it gives no text to a widget."""
SOURCES = [
    PACKAGE / "app.py",
    *(path for path in sorted((PACKAGE / "screens").rglob("*.py")) if path.name not in BELOW_THE_WIDGETS),
]

WIDGETS = {
    *("Static", "Label", "Digits", "Pretty", "Placeholder", "Link", "Markdown", "Welcome", "Toast", "Header", "Footer"),
    *("Button", "Checkbox", "RadioButton", "RadioSet", "Select", "Option", "OptionList", "Selection", "SelectionList"),
    *("Tree", "TabPane", "Tab", "Tabs", "Collapsible", "CollapsibleTitle", "Input", "MaskedInput", "TextArea"),
}
WIDGET_WORDS = {
    "label",
    "title",
    "content",
    "renderable",
    "prompt",
    "placeholder",
    "value",
    "text",
    "tooltip",
    "markdown",
}
METHODS = {
    *("update", "update_cell", "update_cell_at", "add_row", "add_rows", "add_column", "add_columns", "notify"),
    *("write", "write_line", "write_lines", "add", "add_leaf", "add_option", "add_options", "set_options", "set_label"),
    *("load_text", "replace_option_prompt"),
}
METHOD_WORDS = {"label", "title", "message", "content", "value", "prompt", "default"}
ASSIGNED = {"title", "sub_title", "border_title", "border_subtitle", "tooltip", "placeholder"}
WITHOUT_MARKUP = {"title", "sub_title", "placeholder", "value"}
"""Sinks that Textual 8.2.8 shows literally (spec: reliability §5); they take Display too."""

DRAWN = {"Text", "Content"}
LITERAL = "our own words"
CONTAINERS = {"list", "tuple", "Sequence", "Iterable", "Iterator", "Callable"}


@dataclass
class Names:
    """What functions return and what fields hold, over all modules: a name stands for all that bear it."""

    returns: dict[str, list[set[str]]] = field(default_factory=dict)
    fields: dict[str, list[set[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, trees):
        names = cls()
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    names.returns.setdefault(node.name, []).append(types(node.returns))
                elif isinstance(node, ast.ClassDef):
                    for line in node.body:
                        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                            names.fields.setdefault(line.target.id, []).append(types(line.annotation))
        return names


def types(annotation) -> set[str]:
    """The plain names of an annotation; containers do not count, None does not either."""
    if annotation is None:
        return {"?"}
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    found = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} - CONTAINERS
    return found | {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}


class Reader(ast.NodeVisitor):
    def __init__(self, names: Names) -> None:
        self.names = names
        self.scopes: list[dict[str, list]] = [{}]
        self.bases: list[set[str]] = [set()]
        self.findings: list[tuple[int, str]] = []

    # Scopes

    def visit_ClassDef(self, node):
        self.bases.append({base.id for base in node.bases if isinstance(base, ast.Name)})
        self.generic_visit(node)
        self.bases.pop()

    def visit_FunctionDef(self, node):
        scope: dict[str, list] = {}
        arguments = node.args
        for argument in [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]:
            if argument is not None:
                scope.setdefault(argument.arg, []).append(types(argument.annotation))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign | ast.NamedExpr):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                for target in targets:
                    self.bind(scope, target, inner.value)
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                scope.setdefault(inner.target.id, []).append(types(inner.annotation))
            elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                scope.setdefault(inner.target.id, []).append(inner.value)
            elif isinstance(inner, ast.For | ast.AsyncFor | ast.comprehension):
                self.bind(scope, inner.target, None)
        self.scopes.append(scope)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_AsyncFunctionDef(self, node):
        self.visit_FunctionDef(node)

    @staticmethod
    def bind(scope, target, value):
        if isinstance(target, ast.Name):
            scope.setdefault(target.id, []).append(value if value is not None else {"?"})
        elif isinstance(target, ast.Tuple | ast.List | ast.Starred):
            inner = [target.value] if isinstance(target, ast.Starred) else target.elts
            for element in inner:
                Reader.bind(scope, element, None)

    # What an expression is

    def allowed(self, node, kinds: set[str], seen=()) -> bool:
        if node is None or isinstance(node, ast.Constant):
            return LITERAL in kinds
        if isinstance(node, ast.JoinedStr):
            return LITERAL in kinds and not any(isinstance(part, ast.FormattedValue) for part in node.values)
        if isinstance(node, ast.IfExp):
            return self.allowed(node.body, kinds, seen) and self.allowed(node.orelse, kinds, seen)
        if isinstance(node, ast.BoolOp | ast.Tuple | ast.List):
            return all(
                self.allowed(part, kinds, seen) for part in (node.values if isinstance(node, ast.BoolOp) else node.elts)
            )
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.allowed(node.value, kinds, seen)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self.allowed(node.elt, kinds, seen)
        if isinstance(node, ast.Call):
            return self.allowed_call(node, kinds, seen)
        if isinstance(node, ast.Name):
            return self.allowed_name(node.id, kinds, seen)
        if isinstance(node, ast.Attribute):
            return fits(self.names.fields.get(node.attr, []), kinds)
        return False

    def allowed_call(self, node, kinds, seen) -> bool:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "_":
                return LITERAL in kinds and all(isinstance(argument, ast.Constant) for argument in node.args)
            if function.id in kinds:
                return True
            return fits(self.names.returns.get(function.id, []), kinds)
        if isinstance(function, ast.Attribute):
            if function.attr in ("from_markup", "from_ansi"):
                return False
            if isinstance(function.value, ast.Name) and function.value.id in kinds:
                return True  # Text.assemble, Content.styled
            if isinstance(function.value, ast.Call | ast.Name) and self.allowed(
                function.value, kinds - {LITERAL}, seen
            ):
                return True  # a method of a Text gives a Text: copy, join, stylize
            return fits(self.names.returns.get(function.attr, []), kinds)
        return False

    def allowed_name(self, name, kinds, seen) -> bool:
        if name in seen:
            return True
        for scope in reversed(self.scopes):
            if name in scope:
                values = scope[name]
                return all(
                    fits([value], kinds) if isinstance(value, set) else self.allowed(value, kinds, (*seen, name))
                    for value in values
                )
        return False

    def holds_no_widget(self, receiver) -> bool:
        """A dict or set of this function: its `update` and `add` draw nothing."""
        for scope in reversed(self.scopes):
            if isinstance(receiver, ast.Name) and receiver.id in scope:
                return all(
                    bool(value & {"dict", "set"})
                    if isinstance(value, set)
                    else isinstance(value, ast.Dict | ast.Set | ast.DictComp | ast.SetComp)
                    or (
                        isinstance(value, ast.Call)
                        and isinstance(value.func, ast.Name)
                        and value.func.id in ("dict", "set")
                    )
                    for value in scope[receiver.id]
                )
        return False

    # Sinks

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Name) and function.id in WIDGETS:
            self.check(node, node.args, WIDGET_WORDS, set())
        elif isinstance(function, ast.Attribute):
            inherited = (
                function.attr == "__init__"
                and isinstance(function.value, ast.Call)
                and isinstance(function.value.func, ast.Name)
                and function.value.func.id == "super"
                and self.bases[-1] & WIDGETS
            )
            if inherited:
                self.check(node, node.args, WIDGET_WORDS, set())
            elif function.attr == "notify":
                words = {word.arg: word.value for word in node.keywords}
                plain = isinstance(words.get("markup"), ast.Constant) and words["markup"].value is False
                self.check(node, node.args, METHOD_WORDS, {"Display"} if plain else set())
            elif function.attr in METHODS and not self.holds_no_widget(function.value):
                keys = 2 if function.attr.startswith("update_cell") else 0
                self.check(node, node.args[keys:], METHOD_WORDS, set())
        self.generic_visit(node)

    def check(self, call, positional, words, more):
        for argument in positional:
            self.demand(argument, DRAWN | more)
        for keyword in call.keywords:
            if keyword.arg in words:
                self.demand(keyword.value, DRAWN | more | ({"Display"} if keyword.arg in WITHOUT_MARKUP else set()))

    def visit_Assign(self, node):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr in ASSIGNED:
                self.demand(node.value, DRAWN | ({"Display"} if target.attr in WITHOUT_MARKUP else set()))
        self.generic_visit(node)

    def demand(self, node, kinds):
        if not self.allowed(node, kinds | {LITERAL} | ({"display", "say", "clip"} if "Display" in kinds else set())):
            self.findings.append((node.lineno, ast.unparse(node)))


def fits(annotations: list[set[str]], kinds: set[str]) -> bool:
    return bool(annotations) and all(found and found <= kinds | {"None"} for found in annotations)


def findings(*sources: str) -> list[tuple[int, str]]:
    """What the rule refuses in the last of the sources."""
    trees = [ast.parse(source) for source in sources]
    reader = Reader(Names.of(trees))
    reader.visit(trees[-1])
    return reader.findings


BARE = [
    "Static(name)",
    "def f(name: str):\n    return Label(name)",
    "def f(name: str):\n    table.add_row(as_text(display(name)), name)",
    "def f(name: str):\n    return Button(f'stop {name}')",
    "def f(name: str):\n    words = name.upper()\n    self.update(words)",
    "def f(name):\n    words = as_text(display(name))\n    words = name\n    widget.update(words)",
    "def f(record):\n    widget.update(record.message)",
    "def f(names):\n    for name in names:\n        log.write(name)",
    "def f(name: str):\n    tree.root.add_leaf('job ' + name)",
    "def f(name: str):\n    self.notify(name)",
    "def f(name: Display):\n    self.notify(name)",
    "def f(name: str):\n    self.notify(name, markup=False)",
    "def f(name: str):\n    self.notify(display(name), title=name, markup=False)",
    "def f(name: str):\n    self.border_title = name",
    "def f(name: Display):\n    self.border_title = name",
    "def f(name: str):\n    self.border_title = '%s' % name",
    "def f(name: str):\n    self.app.title = name",
    "def f(name: str):\n    self.tooltip = 'x'.join([name])",
    "def f(name: str):\n    return Static(Text.from_markup(name))",
    "def f(name: str):\n    return Static(Content.from_markup(name))",
    "def f(name: str):\n    return Static(_(name))",
    "def f(name: str):\n    return Static(_('job {n}').format(n=name))",
    "def f(name: str):\n    words = _('job {n}')\n    return Static(words.format(n=name))",
    "def f(name: str):\n    return Select([(name, name)])",
    "def f(name: str):\n    return OptionList(*[Option(n) for n in name])",
    "def f(name: str, ok: bool):\n    return Static('all is well' if ok else name)",
    "def f(name: str):\n    table.update_cell('row', 'column', name)",
    "def f(name: str):\n    table.add_column(label=name)",
    "class Line(Static):\n    def __init__(self, name: str):\n        super().__init__(name)",
    "def words(name: str) -> str: ...\ndef f(name):\n    return Static(words(name))",
    "def f(widgets, name: str):\n    widgets.update(name)",
    "def f(name: str):\n    Input(value=name)",
]

SOUND = [
    "Static('ready')",
    "Static(_('ready'))",
    "def f(name: str):\n    return Static(as_content(display(name)))",
    "def f(name: str):\n    table.add_row(as_text(display(name)), Text('x'))",
    "def f(name: Text):\n    widget.update(name, layout=False)",
    "def f(name: Text | Content):\n    widget.update(name)",
    "def f(name: str):\n    words = as_text(display(name))\n    words = words.copy()\n    widget.update(words)",
    "class View:\n    title: Text\ndef f(view: View):\n    widget.update(view.title)",
    "def line(raw: str) -> Text: ...\ndef f(name: str):\n    log.write(line(name))",
    "def f(name: str):\n    self.notify(display(name), title=_('Done'), markup=False)",
    "def f(name: str):\n    self.border_title = as_content(display(name))",
    "def f(name: str):\n    self.app.title = display(name)",
    "def f(name: Display):\n    self.prompt.placeholder = name if name else _('write')",
    "def f(ok: bool):\n    return Static(_('yes') if ok else _('no'))",
    "def f(names):\n    seen = set()\n    for name in names:\n        seen.add(name)",
    "def f(names):\n    found: dict[str, int] = {}\n    found.update(names)",
    "def f(names):\n    table.add_row(*[as_text(display(name)) for name in names])",
    "class Line(Static):\n    def __init__(self):\n        super().__init__(markup=False)",
]

BRIDGE = """
def as_text(display: Display) -> Text: ...
def as_content(display: Display) -> Content: ...
def display(raw: str) -> Display: ...
"""


@pytest.mark.parametrize("source", BARE)
def test_the_rule_finds_a_bare_string(source):
    assert findings(BRIDGE, source)


@pytest.mark.parametrize("source", SOUND)
def test_the_rule_lets_sound_text_pass(source):
    assert findings(BRIDGE, source) == []


def test_no_screen_gives_a_widget_a_bare_string():
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES if path.exists()}
    assert any(path.name == "patched_table.py" for path in texts)
    names = Names.of([ast.parse(text) for text in texts.values()])
    found = []
    for path, text in texts.items():
        reader = Reader(names)
        reader.visit(ast.parse(text))
        found += [f"{path.relative_to(PACKAGE)}:{line}: {code}" for line, code in reader.findings]
    assert found == []
