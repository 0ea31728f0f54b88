"""Instructions in front of an address, and what it takes to find them."""

from collections.abc import Iterator

import pytest
from dapkit import front_end
from sysroot import CHECKOUT

from engine.arch.machine import Insn
from engine.insn.decoder import Decoder

STRUCTS = CHECKOUT / "samples" / "bin" / "x86_64" / "structs"


def test_memory_that_is_no_code_is_not_searched_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = 0
    everything = Decoder.all

    def counted(self: Decoder, address: int, data: bytes) -> Iterator[Insn]:
        nonlocal decoded
        decoded += len(data)
        return everything(self, address, data)

    with front_end() as editor:
        editor.launch(STRUCTS, stopOnEntry=True)
        editor.go()
        data = editor.ask("evaluate", expression="&ada")["memoryReference"]
        monkeypatch.setattr(Decoder, "all", counted)
        for back, most in ((400, 1 << 16), (1 << 14, 1 << 20)):
            decoded = 0
            found = editor.ask(
                "disassemble", memoryReference=data, instructionOffset=-back, instructionCount=back
            )["instructions"]
            assert len(found) == back
            assert int(found[-1]["address"], 16) < int(data, 16)
            assert decoded < most
        far = editor.send(
            "disassemble",
            {"memoryReference": data, "instructionOffset": -1 << 16, "instructionCount": 1},
        )
        assert not editor.answer(far)["success"]
