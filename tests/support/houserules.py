"""Rules of the house that no linter knows, as searches over syntax trees."""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

OPENERS = (
    *("What", "Whether", "Where", "How"),
    *("It", "Its", "They", "Them", "Those", "Another", "Nobody", "That"),
)
"""First words of docstrings that are riddles: they circle a thing instead of saying what it is."""

_BARE = re.compile(r"\s+\w+: (?:it|its|they|them|those|that)\.")
"""A line of a docstring that only points at what it describes."""

MIRRORED = {"cli": "engine/cli"}
"""Directories of tests that are not called as the package is that they mirror."""

_IMPORTERS = ("import_module", "__import__", "run_module", "exec_module")
_OWN = ("self", "cls")
_NOBODYS = {
    "_replace": "a method of named tuples",
    "_asdict": "a method of named tuples",
    "_fields": "an attribute of named tuples",
    "_exit": "a function of os",
    "_uch": "the handle of an engine, which Unicorn's functions take and its class hides",
}


@dataclass(frozen=True)
class Found:
    """A violation: the file, relative to the root of the tree, the line, and what stands there."""

    path: PurePosixPath
    line: int
    what: str

    @property
    def package(self) -> str:
        """The first two parts of the module's name: `engine.probes`, `tui`."""
        return ".".join(self.path.parent.parts[:2])

    def __str__(self) -> str:
        """As compilers print it."""
        return f"{self.path}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Module:
    """A parsed file."""

    path: PurePosixPath
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The whole tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """All classes, nested ones too."""
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def private(self) -> set[str]:
        """The names with one leading underscore that this module defines."""
        return {name for node in self.nodes for name in _defined(node) if _private(name)}


def modules(root: Path, *packages: str) -> list[Module]:
    """Parse all files of the packages below `root`, in order.

    Python's collector rests meanwhile: no node is garbage, and it would look through two million
    of them again and again, for longer than the parser takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [
            Module(PurePosixPath(path.relative_to(root)), ast.parse(path.read_bytes()))
            for package in packages
            for path in sorted((root / package).rglob("*.py"))
        ]
    finally:
        if was_enabled:
            gc.enable()


def stubs(tree: list[Module]) -> Iterator[Found]:
    """Yield NotImplementedError outside of protocols and abstract bases."""
    for module in tree:
        abstract = {
            inner for each in module.classes if _is_abstract(each) for inner in ast.walk(each)
        }
        for node in module.nodes:
            if (
                isinstance(node, ast.Name)
                and node.id == "NotImplementedError"
                and node not in abstract
            ):
                yield Found(module.path, node.lineno, "NotImplementedError in a concrete class")


def private_uses(tree: list[Module]) -> Iterator[Found]:
    """Yield accesses to `x._y` and imports of `_y` of which another module is the owner."""
    for module in tree:
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names if _private(alias.name)]
            elif isinstance(node, ast.Attribute) and _private(node.attr):
                own = isinstance(node.value, ast.Name) and node.value.id in _OWN
                known = own or _is_super(node.value) or node.attr in module.private
                names = [] if known else [node.attr]
            else:
                continue
            for name in names:
                yield Found(module.path, node.lineno, f"{name} is private to another module")


def repeated_classes(tree: list[Module]) -> Iterator[Found]:
    """Yield all classes but the first of each name, underscores aside; nested ones too."""
    first: dict[str, PurePosixPath] = {}
    for module in tree:
        for node in module.classes:
            name = node.name.lstrip("_")
            if name in first:
                yield Found(module.path, node.lineno, f"class {name} is also in {first[name]}")
            first.setdefault(name, module.path)


def riddles(tree: list[Module]) -> Iterator[Found]:
    """Yield docstrings, also those below attributes, whose first word is one of `OPENERS`."""
    for module in tree:
        for node in module.nodes:
            for text in _docstrings(node):
                value = str(text.value)
                if value.split(maxsplit=1)[:1] and value.split(maxsplit=1)[0] in OPENERS:
                    yield Found(module.path, text.lineno, value.strip().splitlines()[0])


def bare_lines(tree: list[Module]) -> Iterator[Found]:
    """Yield lines of docstrings that say nothing of what they describe: `row: it.`"""
    for module in tree:
        for node in module.nodes:
            for text in _docstrings(node):
                for at, line in enumerate(str(text.value).splitlines()):
                    if _BARE.fullmatch(line):
                        yield Found(module.path, text.lineno + at, line.strip())


def copied_records(tree: list[Module]) -> Iterator[Found]:
    """Yield constructor calls that mostly copy another record: `Shown(one.pc, one.line, ...)`.

    Counted are arguments that are an attribute of one value, under the name of the field they
    are for: at least four of them, and more than half of the call's arguments.
    """
    fields = {
        node.name: [
            line.target.id
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]
        for module in tree
        for node in module.classes
    }
    for module in tree:
        for node in module.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            known = fields.get(node.func.id, [])
            given = [*zip(known, node.args, strict=False)]
            given += [(each.arg, each.value) for each in node.keywords if each.arg is not None]
            sources = [
                ast.unparse(value.value)
                for name, value in given
                if isinstance(value, ast.Attribute) and value.attr == name
            ]
            most = max(map(sources.count, sources), default=0)
            if most >= 4 and 2 * most > len(node.args) + len(node.keywords):
                source = max(sources, key=sources.count)
                yield Found(module.path, node.lineno, f"{node.func.id} copies {source}")


def astray(root: Path, suites: Iterable[str]) -> Iterator[Found]:
    """Yield test files whose name and place lead to no module or package.

    `tests/engine/guest/test_memory.py` and `test_memory_limits.py` are tests of
    `engine/guest/memory.py` or of the package `engine/guest/memory`.

    Args:
        root: of the checkout.
        suites: patterns of files, below `tests`, that are about more than a module.
    """
    known = list(suites)
    for path in sorted((root / "tests").rglob("test_*.py")):
        file = path.relative_to(root / "tests")
        if any(file.match(suite) for suite in known):
            continue
        place = root / MIRRORED.get(file.parts[0], file.parts[0]) / Path(*file.parts[1:-1])
        words = file.stem.split("_")[1:]
        stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
        if not any(_exists(place / stem) for stem in stems):
            yield Found(PurePosixPath("tests") / file, 1, "no such module")


def hidden_imports(tree: list[Module]) -> Iterator[Found]:
    """Yield mentions of what imports modules by computed names: no import contract sees those."""
    for module in tree:
        for node in module.nodes:
            name = getattr(node, "id", None) or getattr(node, "attr", None)
            if isinstance(node, ast.Name | ast.Attribute) and name in _IMPORTERS:
                yield Found(module.path, node.lineno, f"{name}: an import that nobody sees")


def compiled_records(tree: list[Module]) -> Iterator[Found]:
    """Yield imports of `dataclass`, whose every use compiles methods at each start."""
    for module in tree:
        for node in module.nodes:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = {alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            if "dataclasses" in names:
                yield Found(module.path, node.lineno, "dataclasses: records are msgspec.Struct")


def counts(found: list[Found]) -> dict[str, int]:
    """How many there are in each package."""
    result: defaultdict[str, int] = defaultdict(int)
    for each in found:
        result[each.package] += 1
    return dict(sorted(result.items()))


def _exists(module: Path) -> bool:
    return module.with_suffix(".py").is_file() or module.is_dir()


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _NOBODYS


def _defined(node: ast.AST) -> Iterator[str]:
    """Names that a statement or an expression defines, as variables or as attributes of self."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.ClassDef(name=name):
            yield name
            yield from _slots(node)
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store()) if owner in _OWN:
            yield name


def _slots(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                for each in ast.walk(value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value


def _is_abstract(node: ast.ClassDef) -> bool:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    names = {
        base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in bases
    }
    return bool(names & {"Protocol", "ABC"})


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand as statements of their own in a module, a class or a function."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        for statement in node.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    yield text
