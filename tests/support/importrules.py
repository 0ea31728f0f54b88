"""Kinds of import contracts that import-linter does not have; pyproject.toml uses them."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

Arrow = tuple[str, str]
"""An importing module and the module that it imports."""


class AllowListContract(Contract):
    """Imports of some modules from others are forbidden but for those listed.

    Modules are given as patterns in which `*` stands for any text, dots included.

    Options:
        importers: whose imports are looked at.
        imported: imports of what; what one of the modules looked at is itself does not count.
            Without it: libraries that are neither the project's nor Python's own.
        allowed: `IMPORTER -> IMPORTED`, patterns both. One that allows no import breaks the
            contract too, so that the list never says more than the code needs.
    """

    type_name = "allow_list"

    importers = fields.ListField(subfield=fields.StringField())
    imported = fields.ListField(subfield=fields.StringField(), required=False)
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compare every direct import, those for type checkers alike, with the list."""
        looked_at, others = _either(_texts(self.importers)), _texts(self.imported)
        wanted = _either(others) if others else _third_party(self.session_options)
        rules = {rule: tuple(map(_pattern, rule.split(" -> "))) for rule in _texts(self.allowed)}
        illegal, used = [], set()
        for importer, imported in _arrows(graph):
            if not looked_at.fullmatch(importer) or not wanted.fullmatch(imported):
                continue
            if others and looked_at.fullmatch(imported):
                continue
            reasons = [
                rule
                for rule, (one, other) in rules.items()
                if one.fullmatch(importer) and other.fullmatch(imported)
            ]
            used.update(reasons)
            if not reasons:
                illegal.append(f"{importer} -> {imported}{_lines(graph, importer, imported)}")
        unused = [f"{rule}: allowed, but nothing does it" for rule in rules if rule not in used]
        found = [*illegal, *unused]
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """List the imports and the idle rules."""
        _render(check)


class PeersContract(Contract):
    """The packages of a container know nothing of each other, and nobody knows just one of them.

    Options:
        container: the package whose subpackages are the peers; it may import them all, and none
            of them may import it.
        shared: subpackages that are no peers.
        users: modules and packages that belong to a peer, `{peer}` standing for its name.
    """

    type_name = "peers"

    container = fields.StringField()
    shared = fields.ListField(subfield=fields.StringField(), required=False)
    users = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look at every import of a peer, and at each peer's imports of the container."""
        container = str(self.container)
        shared = set(_texts(self.shared))
        packages = {name for name in graph.find_children(container) if graph.find_children(name)}
        homes = {
            peer: [
                peer,
                *(user.format(peer=peer.rpartition(".")[2]) for user in _texts(self.users)),
            ]
            for peer in packages - shared
        }
        found = [f"{name}: no such package" for name in shared - packages]
        for importer, imported in _arrows(graph):
            owner = next((peer for peer in homes if _is_in(imported, [peer])), None)
            if owner is not None:
                legal = importer == container or _is_in(importer, homes[owner])
            else:
                legal = imported != container or not _is_in(importer, homes)
            if not legal:
                found.append(f"{importer} -> {imported}{_lines(graph, importer, imported)}")
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """List the imports."""
        _render(check)


def _texts(option: object) -> list[str]:
    """An option's list; none if it is not given."""
    return list(cast("Iterable[str]", option or ()))


def _arrows(graph: ImportGraph) -> Iterator[Arrow]:
    """All direct imports, in order."""
    for importer in sorted(graph.modules):
        if not graph.is_module_squashed(importer):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                yield importer, imported


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.strip().split("*"))))


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(_pattern(text).pattern for text in patterns))


def _third_party(options: dict[str, list[str]]) -> re.Pattern[str]:
    """What is neither below a root package nor in Python's own library."""
    own = "|".join(map(re.escape, {*options["root_packages"], *sys.stdlib_module_names}))
    return re.compile(rf"(?!(?:{own})(?:\.|$)).*")


def _is_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _lines(graph: ImportGraph, importer: str, imported: str) -> str:
    details = graph.get_import_details(importer=importer, imported=imported)
    return f" (l.{', '.join(str(detail['line_number']) for detail in details)})"


def _render(check: ContractCheck) -> None:
    for text in check.metadata["found"]:
        output.print_error(f"- {text}", bold=False)
    output.new_line()
