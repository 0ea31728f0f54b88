"""Entering a function of the guest as if it had been called where the guest stands.

The arguments are put where the function looks for them, by the processor's ELF ABI, and the
return address is one that the caller chooses. Registers are not kept here.
"""

from typing import Final

from msgspec import Struct

from engine.arch.abivalues import Bank
from engine.cpu.base import Cpu
from engine.errors import CommandError
from engine.session.guest.session import Session

_RED_ZONE: Final = 512
_ALIGNED: Final = 16


class CopiedObject(Struct, frozen=True):
    """An object that a function takes by value, and that only its class can copy.

    Attributes:
        address: of the object, which is passed itself where no copy is made.
        size: of it, in bytes.
        constructor: address of the code that copies it.
        destructor: address of the code that ends the copy; 0 for none.
    """

    address: int
    size: int
    constructor: int
    destructor: int


class CallArguments(Struct, frozen=True):
    """Arguments of a call.

    Attributes:
        whole: numbers and pointers, cut to a register; bytes are put on the stack, and their
            address is the argument, as is that of an object.
        real: floating-point numbers as the bits of their registers.
        stack: values that are passed on the stack.
        room: bytes that the caller gives for the result, whose address is passed; 0 for none.
        makes: a constructor is called: the room is its object, and its address the first argument.
    """

    whole: tuple[int | bytes | CopiedObject, ...] = ()
    real: tuple[int, ...] = ()
    stack: tuple[bytes, ...] = ()
    room: int = 0
    makes: bool = False


class EnteredFunction(Struct, frozen=True):
    """The place that a function was entered at.

    Attributes:
        room: the address that was given for the result; 0 for none.
        sp: the stack pointer behind the function's return.
    """

    room: int
    sp: int


def check(session: Session) -> None:
    """See that a function can be called where the guest stands.

    Raises:
        CommandError: it cannot.
    """
    thread = session.machine.current
    if session.arch.returns is not None:
        raise CommandError("Functions are not called on this architecture.")
    if thread.wait is not None or thread.kept_call is not None:
        raise CommandError("The program is in the middle of a system call.")


def enter(
    session: Session, registers: Cpu, address: int, given: CallArguments, back: int
) -> EnteredFunction:
    """Stand at the first instruction of a function, with its arguments given.

    Args:
        session: the guest.
        registers: of the thread that runs.
        address: of the function.
        given: its arguments.
        back: the return address.

    Raises:
        CommandError: there are more arguments than are passed here.
        GuestFaultError: the stack has no room for them.
    """
    arch = session.arch
    memory, word = session.machine.current.memory, arch.bits // 8
    sp = registers.read_register(arch.roles.sp) - _RED_ZONE
    whole: list[int] = []
    room = 0
    if given.room:
        room = sp = (sp - given.room) & -_ALIGNED
        memory.write(room, bytes(given.room))
        hidden = arch.abi.calls is not None and arch.abi.calls.hidden_result
        if given.makes or hidden:
            whole.append(room)
    for one in given.whole:
        if isinstance(one, bytes):
            sp = (sp - len(one)) & -_ALIGNED
            memory.write(sp, one)
            whole.append(sp)
        else:
            whole.append(one.address if isinstance(one, CopiedObject) else one)
    arguments = arch.probes.arguments
    calls = arch.abi.calls
    vectors = 0 if calls is None or calls.own_format else len(calls.vectors)
    if len(whole) > len(arguments) or len(given.real) > vectors:
        raise CommandError(
            f"Functions are called with up to {len(arguments)} arguments here, "
            f"and {vectors} floating-point ones."
        )
    names = [register.name for register in arch.registers]
    results = arch.abi.results
    floats = results().banks[Bank.FLOAT] if results is not None else ()
    first = names.index(floats[0]) if given.real else 0
    for name, value in zip(names[first:], given.real, strict=False):
        registers.write_register(name, value)
    for name, value in zip(arguments, whole, strict=False):
        registers.write_register(name, value & (1 << arch.bits) - 1)
    pushed = b"".join(one + bytes(-len(one) % word) for one in given.stack)
    sp = behind = (sp - len(pushed)) & -_ALIGNED
    if pushed:
        memory.write(sp, pushed)
    if room and results is not None and room not in whole:
        registers.write_register(results().entry, room)
    if arch.roles.link is None:
        sp -= word
        memory.write(sp, back.to_bytes(word, "little" if arch.byteorder == "little" else "big"))
        registers.write_register(arch.linux.result, len(given.real))  # for variadic functions
    else:
        registers.write_register(arch.roles.link, back)
    registers.write_register(arch.roles.sp, sp)
    registers.write_register(arch.roles.pc, address)
    return EnteredFunction(room, behind)
