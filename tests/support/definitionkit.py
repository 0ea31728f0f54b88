"""Definitions read as the kernel reads them, with its names of registers."""

import pytest
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.errors import ProbeSyntaxError
from engine.trace.definition import Definition, parse

NAMES = "ax bx cx dx si di bp sp ip flags cs ss orig_ax r8 r9 r10 r11 r12 r13 r14 r15"


def arch_of(name: str = "x86_64") -> Arch:
    """An architecture with the kernel's register names, which are data of their own.

    It has a name of its own, too: read arguments are kept by the architecture's name.
    """
    arch = by_name(name)
    names = {name: name for name in NAMES.split()}
    probes = replace(arch.probes, fetch_registers=names)
    own = f"{name} with the kernel's names"
    return replace(arch, name=own, probes=probes, parts=tuple(names), bench=None)


X86 = arch_of()
ARM = arch_of("aarch64")


def defined(line: str, arch: Arch = X86, mode: Mode = Mode.STRICT) -> Definition:
    definition = parse(line, arch, mode=mode)
    assert isinstance(definition, Definition)
    return definition


def refused(line: str, arch: Arch = X86, mode: Mode = Mode.STRICT) -> ProbeSyntaxError:
    with pytest.raises(ProbeSyntaxError) as caught:
        parse(line, arch, mode=mode)
    return caught.value
