"""Registers as calls have them: all that changes them is noted, in order."""

from sessionkit import SAMPLES, loaded

from engine.history.journal import Op


def test_what_is_noted() -> None:
    with loaded(SAMPLES / "x86_64" / "words", history=True) as guest:
        registers = guest.session.noted
        registers.write_register("rax", 1)  # nobody wants to know yet
        noted: list[tuple[object, ...]] = []
        registers.note = lambda *what: noted.append(what)
        registers.write_register("rax", 2)
        registers.write_register("xmm0", 1 << 100)
        before = registers.save()
        registers.write_block(("rbx", "rcx"), 8, bytes(16))
        registers.restore(before)
        registers.restore(guest.session.machine.blank)
        registers.expect(5)
        registers.clear_float_flags()
        assert noted == [
            (Op.REGISTER, "rax", 2),
            (Op.BLOCK, ("xmm0",), 16, (1 << 100).to_bytes(16, "little")),
            (Op.SAVE,),
            (Op.BLOCK, ("rbx", "rcx"), 8, bytes(16)),
            (Op.RESTORE, 0),
            (Op.RESTORE, -1),
            (Op.EXPECT, 5),
            (Op.CLEAR_FLAGS,),
        ]
        assert registers.read_register("rax") == 0
