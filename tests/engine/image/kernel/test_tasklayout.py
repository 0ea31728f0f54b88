"""Where user-mode Linux keeps its tasks, read from its code."""

import shutil
from collections.abc import Sequence

import pytest
from kernelimages import UML_61, image_path
from msgspec.structs import replace

from engine import arch as architectures
from engine.arch.machine import Insn
from engine.image import ElfImage, SymbolTable
from engine.image.kernel.filelayout import AreaLayout, ContentLayout, FileLayout, PathLayout
from engine.image.kernel.tasklayout import (
    TaskLayout,
    UserLayout,
    WaitingLayout,
    task_layout,
)
from engine.insn.disasm import Disassembler

_DECODE = Disassembler(architectures.by_name("x86_64")).decode


def test_the_layout_of_debians_kernel() -> None:
    image = ElfImage.open(image_path(UML_61))
    symbols = image.once(SymbolTable)
    found = task_layout(image, symbols, _DECODE)
    assert found == TaskLayout(
        size=4 << 12,  # CONFIG_KERNEL_STACK_ORDER=2
        stack=8,
        pid=0x308,
        comm=0x4B8,
        switched=0x6004A195,
        renamed=0x6017C057,
        dies=0x60072DC7,
        user=UserLayout(
            registers=0x780,
            mm=0x290,
            process=0x2C8,
            tables=0x30,
            physical=0x60A3B300,
            files=FileLayout(
                AreaLayout(
                    root=0,
                    pivots=8,
                    slots=(128, 128, 80),
                    start=0,
                    end=8,
                    mm=0x10,
                    file=0x70,
                    page=0x68,
                ),
                PathLayout(
                    mount=0x10,
                    entry=0x18,
                    inside=0x20,
                    root=0x20,
                    above=0x10,
                    point=0x18,
                    parent=0x18,
                    size=0x24,
                    name=0x28,
                ),
                ContentLayout(
                    mapping=0xC0,
                    inode=0,
                    length=0x50,
                    pages=0x10,
                    slots=0x28,
                    mask=63,
                    descriptions=0x60A57010,
                    shift=6,
                ),
            ),
        ),
        waiting=WaitingLayout(
            first=0x608D4B40,
            next=0x280,
            saved=0x1398,
            registers=("rbx", "rsp", "rbp", "r12", "r13", "r14", "r15", "rip"),
        ),
    )
    # The stack pointer has just been loaded there: mov rsp, [rdi + 8].
    assert image.read_vaddr(found.switched - 4, 4) == bytes.fromhex("48 8b 67 08")


def test_a_compiler_may_add_by_lea() -> None:
    image = ElfImage.open(image_path(UML_61))
    symbols = image.once(SymbolTable)

    def spelled(insn: Insn) -> Insn:
        register, _, number = insn.operands.partition(", ")
        if insn.mnemonic != "add" or number != "0x4b8":
            return insn
        return replace(insn, mnemonic="lea", operands=f"{register}, [{register} + {number}]")

    def decode(address: int, raw: bytes) -> Sequence[Insn]:
        return [spelled(insn) for insn in _DECODE(address, raw)]

    assert task_layout(image, symbols, decode) == task_layout(image, symbols, _DECODE)


def test_functions_that_contradict_each_other_are_not_believed() -> None:
    image = ElfImage.open(image_path(UML_61))
    symbols = image.once(SymbolTable)

    def decode(address: int, raw: bytes) -> Sequence[Insn]:
        found = _DECODE(address, raw)
        if address != 0x6017C057:  # __set_task_comm
            return found
        return [replace(insn, operands=insn.operands.replace("0x4b8", "0x4c0")) for insn in found]

    assert task_layout(image, symbols, decode) is None


def test_user_programs_are_left_out_where_page_tables_are_otherwise() -> None:
    image = ElfImage.open(image_path(UML_61))
    symbols = image.once(SymbolTable)
    walk = symbols.find("virt_to_pte")
    assert walk is not None

    def decode(address: int, raw: bytes) -> Sequence[Insn]:
        found = _DECODE(address, raw)
        if address != walk.address:
            return found
        return [replace(insn, operands=insn.operands.replace("0x1e", "0x27")) for insn in found]

    found = task_layout(image, symbols, decode)
    assert found is not None
    assert found.user is None


_ASKED = (
    *("show_map_vma", "populate_vma_page_range", "mas_start", "ma_pivots", "ma_slots"),
    *("prepend_path", "prepend_name", "file_path", "generic_file_llseek"),
    *("page_cache_next_miss", "xas_start", "xas_load", "__get_free_pages"),
)


def test_files_are_left_out_where_a_function_is_otherwise() -> None:
    image = ElfImage.open(image_path(UML_61))
    symbols = image.once(SymbolTable)
    for name in _ASKED:
        symbol = symbols.find(name)
        assert symbol is not None, name
        gone = symbol.address

        def decode(address: int, raw: bytes, gone: int = gone) -> Sequence[Insn]:
            return () if address == gone else _DECODE(address, raw)

        found = task_layout(image, symbols, decode)
        assert found is not None
        assert found.user is not None
        assert found.user.files is None, name


def test_a_program_is_no_kernel() -> None:
    path = shutil.which("ls")
    if path is None:
        pytest.skip("there is no ls")
    image = ElfImage.open(path)
    assert task_layout(image, SymbolTable(image), _DECODE) is None
