"""Interruptions that end the execution of a slot: raised by generated code and its helpers."""


class Interruption(Exception):  # noqa: N818 - the manual's word; not all are errors
    """Something the run loop has to see to; the slot has changed nothing yet."""


class Illegal(Interruption):
    """An illegal operation or reserved field; the argument says what, in words."""


class Privileged(Interruption):
    """A privileged operation at user level."""


class NatConsumption(Interruption):
    """A NaT where a value is needed."""


class BreakInterruption(Interruption):
    """A break instruction; the argument is what cr.iim shows."""


class Unaligned(Interruption):
    """An access that is not aligned: (address, access)."""


class PageFault(Interruption):
    """A refused access: (address, access)."""


class OutOfMemory(Interruption):
    """The guest's budget of touched pages is used up: (address,)."""


class FloatFault(Interruption):
    """An unmasked floating-point fault; the slot has not executed."""


class FloatTrap(Interruption):
    """An unmasked floating-point trap; the slot has executed."""


class NatAppears(Interruption):
    """The first NaT is about to be made: the slot is executed by code that knows them."""


class NatsGone(Interruption):
    """Machine code that knows of NaT bits has left where there are none: (next address,)."""


class Redirected(Interruption):
    """An action at a breakpoint has changed what code is to run: (next address, follow)."""


class Stepped(Interruption):
    """A slot was executed with psr.ss, and the engine has to see to it: (where it came to,)."""


class NarrowFrame(Interruption):
    """A block writes registers beyond the frame: its slots are executed one at a time."""


class CodeChanged(Interruption):
    """A store to a page with translated code, by arena offset: that is to be forgotten first."""
