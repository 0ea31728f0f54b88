"""The layout of the tasks of a kernel that runs as a program, read from its own code.

Such is user-mode Linux. Its stacks are aligned to their size, and at the bottom of each lies a
thread_info, whose first word is the task that runs there (arch/um/include/asm/thread_info.h).
Where in a task its process id and name are no table of a stripped kernel says. The functions that
ask for them do: dump_stack_print_info() prints both of `current`, __set_task_comm() writes the
name, __switch_to() goes by the task's stack, and kernel_longjmp() is what changes stacks.
do_task_dead() is where a task switches to another one for the last time.

Its user programs run in processes that it traces, one for each mm. new_thread_handler() is where a
task goes to its program for the first time, with the registers to give it, get_task_mm() asks for
a task's mm, and destroy_context() ends the process of one. virt_to_pte() walks the tables of its
pages.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.machine import Insn
from engine.image.elf import ElfImage
from engine.image.kernel.codefields import ADDRESS, LOAD, NUMBER, CodeOf, loads, offset_added
from engine.image.kernel.filelayout import FileLayout, file_layout
from engine.image.kernel.recognition import is_kernel
from engine.image.symbols import SymbolTable

Decode = Callable[[int, bytes], Sequence[Insn]]
"""Instructions of x86-64, in Intel's syntax, given their address and bytes."""

_X86_64: Final = 62
_PAGE: Final = 4096
_LARGEST: Final = 1 << 20
_MASK: Final = 1 << 64
_LONGEST: Final = 1024
_WHOLE: Final = re.compile(r"^(?:e(\w\w)|r(\d+)d)$")
"""A register's lower half."""
_WORD_AT: Final = re.compile(r"\w+, qword ptr \[(?:rip \+ )?(0x\w+)\]")
_SHIFT: Final = re.compile(r"shr (\w+), (0x\w+|\d+)")
_JUMP: Final = re.compile(r"qword ptr \[rdi \+ (0x\w+)\]")
_LEVELS: Final = {30, 21 - 3, 12 - 3}
"""Shifts by which the tables of pages are walked; but for the first the index is one of bytes."""


class UserLayout(Struct, frozen=True):
    """The way from a task to its user program, which another process runs.

    Attributes:
        registers: offset in a task of the registers that its program had last, in the order of
            PTRACE_GETREGS.
        mm: offset in a task of the address of its mm; 0 stands there for a kernel's own task.
        process: offset in an mm of the id of the process that has it, 32 bits.
        tables: offset in an mm of the address of its page tables: three levels of 9 bits.
        physical: link address of a word, the address that the kernel has physical memory at.
        files: where the files are that programs map; None where the code does not show it.
    """

    registers: int
    mm: int
    process: int
    tables: int
    physical: int
    files: FileLayout | None = None


class WaitingLayout(Struct, frozen=True):
    """The way to all tasks, and to where those stand that do not run.

    Attributes:
        first: link address of the first task, the idle one.
        next: offset in a task of the word that leads to that of the next one, in a circle.
        saved: of what it has saved of its registers.
        registers: their names, in order.
    """

    first: int
    next: int
    saved: int
    registers: tuple[str, ...]


class TaskLayout(Struct, frozen=True):
    """The layout of a kernel's tasks and stacks, and the places where another task runs.

    Attributes:
        size: bytes of a stack, which it is aligned to.
        stack: offset in a task of the address of its stack.
        pid: of its id, 32 bits; behind it lies that of its process.
        comm: of its name, of 16 bytes.
        switched: link address of an instruction that is the first on another stack.
        renamed: link address of a function that gives the task of its first argument the name
            of its second.
        dies: that of the function that the task that runs comes to last.
        user: the way to user programs; None where the code does not show it.
        waiting: that to the tasks that wait; likewise.
    """

    size: int
    stack: int
    pid: int
    comm: int
    switched: int
    renamed: int
    dies: int
    user: UserLayout | None = None
    waiting: WaitingLayout | None = None


def task_layout(image: ElfImage, symbols: SymbolTable, decode: Decode) -> TaskLayout | None:
    """The layout of a kernel that runs as a program; None of another one, or of none.

    Args:
        image: the program.
        symbols: of it.
        decode: decodes its code.
    """
    if (image.machine, image.bits) != (_X86_64, 64) or not is_kernel(image):
        return None

    def code(name: str) -> Sequence[Insn]:
        found = symbols.find(name)
        if found is None:
            return ()
        raw = image.read_vaddr(found.address, min(found.size, _LONGEST))
        return decode(found.address, raw)

    current = _of_current(code("dump_stack_print_info"))
    named = offset_added(code("__set_task_comm"), "rdi")
    stack = next(loads(code("__switch_to"), "rsi"), None)
    jump = code("kernel_longjmp")
    changes = [insn for insn in jump if insn.operands.startswith("rsp, ")]
    renamed = symbols.find("__set_task_comm")
    dies = symbols.find("do_task_dead")
    if current is None or stack is None or not changes or renamed is None or dies is None:
        return None
    size, pid, comm = current
    if comm != named:
        return None
    switched = changes[-1].address + changes[-1].size
    user = _user_layout(code)
    places = switched, renamed.address, dies.address
    return TaskLayout(size, stack, pid, comm, *places, user, _waiting(code))


def _waiting(code: CodeOf) -> WaitingLayout | None:
    """The way to tasks that wait; None where the code is otherwise than is known."""
    listed, jump = code("show_state_filter"), code("kernel_longjmp")
    saved = offset_added(code("__switch_to"), "rdi")
    first = next((one for one in map(_constant, listed) if one), None)
    if saved is None or first is None:
        return None
    following = next(loads(listed, first[0]), None)
    order: dict[int, str] = {}
    for insn in jump:
        load = LOAD.fullmatch(insn.operands)
        if insn.mnemonic == "mov" and load and load[3] == "rdi":
            order[int(load[4] or "0", 0)] = load[1]
    goes = next((word for insn in jump if (word := _JUMP.fullmatch(insn.operands))), None)
    if following is None or goes is None:
        return None
    order[int(goes[1], 0)] = "rip"
    if sorted(order) != list(range(0, 8 * len(order), 8)):
        return None
    return WaitingLayout(first[1], following, saved, tuple(order[at] for at in sorted(order)))


def _constant(insn: Insn) -> tuple[str, int] | None:
    number = NUMBER.fullmatch(insn.operands) if insn.mnemonic in ("mov", "movabs") else None
    return (number[1], int(number[2], 0)) if number else None


def _user_layout(code: CodeOf) -> UserLayout | None:
    """The way to user programs; None where the code is otherwise than is known."""
    registers = None
    for insn in code("new_thread_handler"):
        found = offset_added((insn,), "rdi")
        registers = found if found is not None else registers
    mm = next(loads(code("get_task_mm"), "rdi"), None)
    process = next(loads(code("destroy_context"), "rdi", "d"), None)
    walk = code("virt_to_pte")
    tables = next(loads(walk, "rdi"), None)
    words = [word for insn in walk if (word := _WORD_AT.fullmatch(insn.operands))]
    levels = {int(number[2], 0) for insn in walk if (number := _SHIFT.match(insn.text))}
    if registers is None or mm is None or process is None or tables is None:
        return None
    if not words or levels != _LEVELS:
        return None
    return UserLayout(registers, mm, process, tables, int(words[0][1], 0), file_layout(code))


def _of_current(code: Sequence[Insn]) -> tuple[int, int, int] | None:
    """Size of a stack, offsets of id and name, from code that prints them of `current`."""
    size = 0
    bottoms: set[str] = set()
    tasks: set[str] = set()
    pid = comm = None
    for insn in code:
        words = insn.operands
        load, number, address = LOAD.match(words), NUMBER.match(words), ADDRESS.match(words)
        target = _WHOLE.sub(r"r\1\2", words.partition(",")[0])
        if insn.mnemonic == "mov" and load and load[2] == "q" and load[3] in bottoms:
            made = tasks if load[4] is None else None
        elif insn.mnemonic == "and" and number and _is_stack(_MASK - int(number[2], 0)):
            size, made = _MASK - int(number[2], 0), bottoms
        else:
            made = None
            if insn.mnemonic == "mov" and load and load[2] == "d" and load[3] in tasks:
                pid = int(load[4] or "0", 0)
            elif insn.mnemonic == "add" and number and number[1] in tasks:
                comm = int(number[2], 0)
            elif insn.mnemonic == "lea" and address and address[2] in tasks:
                comm = int(address[4], 0)
        bottoms.discard(target)
        tasks.discard(target)
        if made is not None:
            made.add(target)
        if insn.mnemonic == "call" and pid is not None and comm is not None:
            break
    return None if pid is None or comm is None else (size, pid, comm)


def _is_stack(size: int) -> bool:
    return _PAGE <= size <= _LARGEST and not size & (size - 1)
