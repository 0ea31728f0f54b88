"""The parts of a run's time are told apart by the addresses that were interrupted."""

import ctypes

import pytest

from engine.cpu import native
from engine.cpu import unicorn_linkage as linkage
from engine.session.headless import self_profile
from engine.session.headless.self_profile import SelfProfile, divided, executable, kind_of

FUNCTIONS = {
    "tb_gen_code": self_profile.TRANSLATE,
    "tcg_optimize": self_profile.TRANSLATE,
    "disas_insn": self_profile.TRANSLATE,
    "liveness_pass_1": self_profile.TRANSLATE,
    "helper_lookup_tb_ptr": self_profile.LOOK_UPS,
    "tb_htable_lookup": self_profile.LOOK_UPS,
    "qht_lookup_custom": self_profile.LOOK_UPS,
    "cpu_exec": self_profile.LOOK_UPS,
    "cpu_restore_state_from_tb": self_profile.LEAVING,
    "g_tree_lookup": self_profile.LEAVING,
    "load_helper": self_profile.CALLS,
    "helper_fldt_ST0": self_profile.CALLS,
    "tlb_set_page_with_attrs": self_profile.CALLS,
    "float64_add": self_profile.CALLS,
    "list_remove": self_profile.EMULATOR,
}
"""Functions of Unicorn 2.1.4, and what QEMU's documents say they are there for."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_emulator(name: str) -> None:
    assert kind_of(name) == FUNCTIONS[name]


def test_executable_mappings() -> None:
    lines = (
        "7f0000000000-7f0000002000 r--p 00000000 08:01 12 /usr/lib/libx y.so\n",
        "7f0000002000-7f0000005000 r-xp 00002000 08:01 12 /usr/lib/libx y.so\n",
        "7f1000000000-7f1000001000 rwxp 00000000 00:00 0 \n",
    )
    assert [(each.start, each.end, each.offset, each.path) for each in executable(lines)] == [
        (0x7F0000002000, 0x7F0000005000, 0x2000, "/usr/lib/libx y.so"),
        (0x7F1000000000, 0x7F1000001000, 0, ""),
    ]


@pytest.mark.skipif(not native.possible(), reason="no host code on this machine")
def test_addresses_are_told_apart() -> None:
    """By functions whose addresses the linker knows, and by code that we have placed."""
    placed = native.place((b"\xc3",))
    assert placed is not None
    (ours,), memory = placed
    python = linkage.address_in(ctypes.pythonapi.Py_IncRef)
    c_library = linkage.address_in(ctypes.CDLL(None).memchr)
    translate = linkage.address_of("tb_gen_code_x86_64")
    assert memory is not None
    assert translate
    addresses = [ours, python, python, c_library, translate, translate + 1, 8]
    kinds, functions = divided(addresses)
    assert kinds == {
        self_profile.CALLBACKS: 1,
        self_profile.PYTHON: 2,
        self_profile.C_LIBRARY: 1,
        self_profile.TRANSLATE: 2,
        self_profile.ELSEWHERE: 1,
    }
    assert functions == {"tb_gen_code": 2}


def test_nothing_is_made_up_without_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    assert list(SelfProfile().lines()) == [
        "where the time went is not known: no host code to sample it with"
    ]
