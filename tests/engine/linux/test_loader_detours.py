"""Where detours stand beside programs that are linked to low addresses."""

from pathlib import Path

import pytest
from compiled import build
from jumpkit import detour_of
from sessionkit import loaded

from engine.arch.x86_64 import X86_64
from engine.session.protocol.requests import ProbeRequest

HIGH, SIZE = X86_64.plan.image_detour_high, X86_64.plan.image_detour_size
SOURCE = """\
.globl work, _start
.type work,@function
work: mov $12,%eax
xor %ecx,%ecx
ret
.size work,.-work
_start: mov $5,%ebx
1: call work
dec %ebx
jne 1b
xor %edi,%edi
syscall
mov %rax,%rdi
add $0x3000,%rdi
mov $12,%eax
syscall
sub %rdi,%rax
mov %eax,%edi
mov $60,%eax
syscall
.fill PADDING,1,0x90
"""


def program(folder: Path, padding: int) -> Path:
    """Calls a function, makes its heap larger, and ends with what it did not get of that."""
    source = SOURCE.replace("PADDING", str(padding))
    return build(folder, f"low{padding}", source, "-nostdlib", "-static")


@pytest.mark.parametrize(("padding", "high"), [(0x100, False), (0x9_0000, True)])
def test_much_code_has_its_window_above(tmp_path: Path, padding: int, high: bool) -> None:
    """The trace is the same whatever stands at the function: no time passes in the window."""
    texts = []
    for technique in ("breakpoint", "jump"):
        with loaded(program(tmp_path, padding), technique=technique) as guest:
            tracing = guest.tracing()
            tracing.definitions.place(ProbeRequest(entries=("work",)))
            (point,) = guest.session.probes().manager.placed()
            guest.run(tracing)
            assert guest.session.process.exit is not None
            assert guest.session.process.exit.code == 0
            texts.append(guest.written)
            if technique == "jump":
                assert (HIGH <= detour_of(point).start < HIGH + SIZE) is high
                assert (detour_of(point).start < point.address) is not high
    assert texts[0] == texts[1]
    assert texts[0].count(b" p_work_0: ") == 5
