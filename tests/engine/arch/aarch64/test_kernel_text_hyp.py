"""Addresses that KVM gives its code, on machines that are described so far."""

import pytest
from tableview import TableView

from engine.arch.aarch64.kernel_text_hyp import HypAddresses, hyp_addresses
from engine.arch.kernelcpu import CpuModel

_TEXT = 0xFFFF800008010000
_FIELDS = {"memory": "0x40000000-0x80000000", "kernel at": "0x40200000", "hyp tag": "0x20001"}


def _layout(**fields: str) -> HypAddresses | None:
    view = TableView(_TEXT, bytes(16))
    view.symbols["_stext"] = _TEXT
    return hyp_addresses(view, CpuModel({**_FIELDS, **fields}, 1, ()))


def test_an_address_is_a_distance_below_a_tag() -> None:
    layout = _layout()
    assert layout is not None
    assert layout.bits == 30
    words = layout.translated([0x92400273, 0x93D30673, 0x91000273, 0x91400273, 0x93D3FE73])
    assert [f"{word:08x}" for word in words] == [
        "92407673",  # and x19, x19, #0x3fffffff
        "93d37a73",  # ror x19, x19, #30
        "91000673",  # add x19, x19, #1
        "91408273",  # add x19, x19, #32, lsl #12
        "93d38a73",  # ror x19, x19, #34
    ]


def test_a_vector_is_entered_behind_its_first_store() -> None:
    layout = _layout()
    assert layout is not None
    table = 0xFFFF800008000000 + 0xCF8800
    words = layout.vector(table, _TEXT + 0x12C)
    target = sum((word >> 5 & 0xFFFF) << 16 * i for i, word in enumerate(words[:3]))
    assert target == 0x20001 << 30 | 0xEF8800 | 0x100 | 8
    assert words[3] == 0xD61F0000


def test_the_kernels_offset_is_loaded_in_four_parts() -> None:
    layout = _layout()
    assert layout is not None
    words = layout.kernel_offset([0xD2800006, 0xF2A00006, 0xF2C00006, 0xF2E00006])
    value = sum((word >> 5 & 0xFFFF) << 16 * i for i, word in enumerate(words))
    assert value == 0xFFFF800008000000 - 0x40200000
    assert [word & 31 for word in words] == [6] * 4


@pytest.mark.parametrize(
    "field", [{"memory": ""}, {"memory": "5-3"}, {"hyp tag": "x"}, {"kernel at": ""}]
)
def test_less_is_not_enough(field: dict[str, str]) -> None:
    assert _layout(**field) is None
