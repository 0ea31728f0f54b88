"""Kernels of the golden data as their definitions see them: names, and a part of the types."""

import json
import lzma
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from engine.arch import by_name
from engine.arch.base import Arch
from engine.fetch.dentry_types import DentryOffsets
from engine.fetch.era import Era, era_of
from engine.image.kernel.btf import Btf
from engine.trace.btf_scope import dentry_offsets

DATA = Path(__file__).parents[1] / "data" / "kernel"
VERSIONS = {"amd64-6.1": (6, 1, 192), "amd64-6.12": (6, 12, 117), "arm64-6.1": (6, 1, 192)}
KERNELS = tuple(VERSIONS)


def golden_rows(kernel: str, name: str) -> Iterator[dict[str, Any]]:
    """What the kernel answered: the rows of one file."""
    with lzma.open(DATA / kernel / f"{name}.given.jsonl.xz", "rt") as lines:
        yield from map(json.loads, lines)


class GoldenKernel:
    """A `ProbedKernel` with the names of a kernel, and such types as the rows mention.

    Attributes:
        refusal: what every place answers to a probe: the name of an error, "" for none.
    """

    def __init__(self, name: str) -> None:
        self.refusal = ""
        self.traceable = True
        self._name = name
        self._own: dict[str, list[int]] = defaultdict(list)
        self._modules: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        own: dict[str, int] = {}
        text = lzma.decompress((DATA / name / "kallsyms.txt.xz").read_bytes()).decode()
        for line in text.splitlines():
            address, _, symbol, *module = line.split()
            if module:
                self._modules[module[0].strip("[]")][symbol].append(int(address, 16))
            else:
                self._own[symbol].append(int(address, 16))
                own.setdefault(symbol, int(address, 16))
        inside = [
            a for module in self._modules.values() for found in module.values() for a in found
        ]
        places = [a for found in self._own.values() for a in found]
        self._starts = sorted({*inside, *places})
        self._ranges = [range(min(inside), max(inside) + 1)]
        if "_end" in own:
            self._ranges.append(range(own["_stext"], own["_end"]))
        else:
            self._ranges.append(range(own["_stext"], own["_etext"]))
            self._ranges.append(range(own["_sinittext"], own["_einittext"]))
        pads = DATA / name / "landing_pads.txt.xz"
        text = lzma.decompress(pads.read_bytes()).decode() if pads.exists() else ""
        self._pads = {int(line, 16) for line in text.split()}
        btf = DATA / name / "btf_part.xz"
        self.types: tuple[Btf, ...] = ()
        if btf.exists():
            self.types = (Btf(lzma.decompress(btf.read_bytes()), name),)

    @property
    def arch(self) -> Arch:
        return by_name("x86_64" if self._name.startswith("amd64") else "aarch64")

    @property
    def era(self) -> Era:
        return era_of(VERSIONS[self._name])

    @property
    def dentry(self) -> DentryOffsets | None:
        return dentry_offsets(self.types)

    @property
    def instances(self) -> int:
        return 10

    def addresses(self, name: str, module: str | None) -> Sequence[int]:
        if module:
            return self._modules[module].get(name, ())
        found = list(self._own.get(name, ()))
        if module == "":
            return found
        for symbols in self._modules.values():
            found += symbols.get(name, ())
        return found

    def has_module(self, name: str) -> bool:
        return name in self._modules

    def covering(self, address: int) -> tuple[int, int] | None:
        if not any(address in one for one in self._ranges):
            return None
        at = bisect_right(self._starts, address)
        return self._starts[at - 1], self._starts[at] if at < len(self._starts) else address + 1

    def at_entry(self, start: int, offset: int) -> bool:
        return offset == 0 or (offset == 4 and start in self._pads)

    def notrace(self, address: int) -> bool:
        return not self.traceable

    def traced_names(self) -> Sequence[str]:
        return ["vfs_read", "vfs_write"] if self.traceable else []

    def register(self, address: int, *, is_return: bool) -> str:
        return self.refusal

    def has_event(self, group: str, name: str) -> bool:
        return (group, name) == ("sched", "sched_switch")

    def tracepoint(self, name: str) -> str | None:
        stub = f"__probestub_{name}"
        return stub if name == "sched_switch" else None


@cache
def golden_kernel(name: str) -> GoldenKernel:
    """One of `KERNELS`; set what it answers before each question."""
    return GoldenKernel(name)
