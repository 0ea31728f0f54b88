"""The moments at which a booted kernel tells its own events: records made, system calls.

A tracepoint that is enabled makes a record in the kernel's buffer, and is told where that is whole
(trace_event_buffer_commit of kernel/trace/trace_events.c). System calls are told where the
kernel's code takes and leaves them, whether anything is enabled or not.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from engine.cpu.unicorn_system import SystemCpu
from engine.errors import GuestFaultError, ProbeError
from engine.machine.addresses import KernelAddresses
from engine.machine.probing import MachineProbes
from engine.session.kernel.opened import OpenedKernel

PT_REGS: Final = struct.Struct("<21Q")
"""`struct pt_regs` of x86-64."""
AX, ORIG_AX, IP = 10, 15, 16
"""Words of it: the result, the number of a system call, the place in the program."""
ARGUMENTS: Final = (14, 13, 12, 7, 9, 8)
"""Words of it that hold the arguments of a system call."""
COMMIT: Final = "trace_event_buffer_commit"
ENTERED: Final = "do_syscall_64"
LEFT: Final = "syscall_exit_to_user_mode"
_OF_32_BITS: Final = 2
"""TS_COMPAT, in the status of a thread."""
_LOW: Final = 0xFFFFFFFF
_FULL: Final = "global_trace"
"""The buffer that is not one of tracefs's instances."""

RecordTold = Callable[[int], None]
"""Called with the address of a record."""
CallTold = Callable[[Sequence[int]], None]
"""Called with the words of a system call's `struct pt_regs`."""


class EventHits:
    """Calls functions at the events of one machine's kernel."""

    def __init__(
        self,
        opened: OpenedKernel,
        cpu: SystemCpu,
        addresses: KernelAddresses,
        probes: MachineProbes,
        task: Callable[[], int],
    ) -> None:
        """None yet.

        Args:
            opened: the kernel.
            cpu: the processor.
            addresses: its memory as the kernel sees it.
            probes: of the machine.
            task: gives the address of the task that runs.
        """
        self._opened, self._addresses, self._probes = opened, addresses, probes
        self._task = task
        self._first = cpu.reader(("rdi",))
        self._saved = addresses.reader(PT_REGS)
        self._records: dict[int, list[RecordTold]] = {}
        self._begun: dict[int, dict[int, list[Callable[[], None]]]] = {}
        self._entered: dict[int | None, list[CallTold]] = {}
        self._left: dict[int | None, list[CallTold]] = {}

    # -- what is wanted -------------------------------------------------------------------

    def record(self, call: int, told: RecordTold) -> None:
        """Have the records of an event told.

        Args:
            call: address of its `struct trace_event_call`.
            told: see `RecordTold`.
        """
        self._records.setdefault(call, []).append(told)

    def begun(self, recorder: int, call: int, told: Callable[[], None]) -> None:
        """Have an event told where the function that records it begins.

        Args:
            recorder: address of the function.
            call: see `record`.
            told: called there.
        """
        self._begun.setdefault(recorder, {}).setdefault(call, []).append(told)

    def enters(self, number: int | None, told: CallTold) -> None:
        """Have a system call told that begins, by its number; None for any."""
        self._entered.setdefault(number, []).append(told)

    def leaves(self, number: int | None, told: CallTold) -> None:
        """Have a system call told that ends, by its number; None for any."""
        self._left.setdefault(number, []).append(told)

    def needed(self, name: str) -> int:
        """The address of a function where events are told.

        Raises:
            ProbeError: the kernel has none of that name.
        """
        found = self._opened.names.find(name)
        if found is None:
            raise ProbeError(f"this kernel has no {name}, where events of its kind are told")
        return found

    # -- what happens ---------------------------------------------------------------------

    def follow(self) -> None:
        """Have the machine tell what is wanted; nothing else can be wanted behind that.

        Raises:
            ProbeError: the kernel's types do not tell its events, or a function is missing.
        """
        if self._records or self._begun:
            self._follow_records()
        if self._entered:
            enters = partial(self._called, self._entered, ends=False)
            self._probes.add(self.needed(ENTERED), enters, begins=True)
        if self._left:
            leaves = partial(self._called, self._left, ends=True)
            self._probes.add(self.needed(LEFT), leaves, begins=True)

    def _follow_records(self) -> None:
        layout = self._opened.image.layout
        buffer, file = layout("trace_event_buffer") or {}, layout("trace_event_file") or {}
        if not {"trace_file", "entry"} <= buffer.keys() or not {"event_call", "tr"} <= file.keys():
            raise ProbeError("the kernel's types do not tell its events")
        made, entry = buffer["trace_file"][0], buffer["entry"][0]
        event_call, owner = file["event_call"][0], file["tr"][0]
        pointer, first, records = self._pointer, self._first, self._records
        full = self._opened.names.find(_FULL)

        def committed() -> None:
            at = first()[0]
            of = pointer(at + made)
            wanted = records.get(pointer(of + event_call))
            if wanted is None or (full is not None and pointer(of + owner) != full):
                return
            for told in wanted:
                told(pointer(at + entry))

        if records:
            self._probes.add(self.needed(COMMIT), committed, begins=True)

        def begins(of_calls: dict[int, list[Callable[[], None]]]) -> None:
            of = first()[0]
            wanted = of_calls.get(pointer(of + event_call))
            if wanted is None or (full is not None and pointer(of + owner) != full):
                return
            for told in wanted:
                told()

        for recorder, of_calls in self._begun.items():
            self._probes.add(recorder, partial(begins, of_calls), begins=True)

    def _pointer(self, address: int) -> int:
        """A word of the kernel's memory; 0 where there is none."""
        try:
            return int.from_bytes(self._addresses.read(address, 8), "little")
        except GuestFaultError:
            return 0

    def _called(self, wanted: dict[int | None, list[CallTold]], *, ends: bool) -> None:
        """A system call begins or ends."""
        try:
            saved = self._saved(self._first()[0])
        except GuestFaultError:
            return
        if ends and self._is_of_32_bits():
            return  # its beginning is not told either
        for key in (None, saved[ORIG_AX] & _LOW):
            for told in wanted.get(key, ()):
                told(saved)

    def _is_of_32_bits(self) -> bool:
        status = (self._opened.image.layout("thread_info") or {}).get("status")
        if status is None:
            return False
        try:
            found = self._addresses.read(self._task() + status[0], 4)
        except GuestFaultError:
            return False
        return bool(int.from_bytes(found, "little") & _OF_32_BITS)
