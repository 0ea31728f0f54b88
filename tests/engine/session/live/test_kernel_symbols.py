"""Names of kernel addresses from a list of symbols."""

from pathlib import Path

from engine.session.live.kernel_symbols import RunningSymbols
from engine.session.live.processes import LiveProcesses

LIST = """\
0000000000000000 A fixed_percpu_data
ffffffff81363fa0 t do_sys_openat2
ffffffff81363fa0 t its_other_name
ffffffff81364110 T do_sys_open
ffffffffc0001000 t helper\t[ext4]
ffffffffc0001040 t last\t[ext4]
"""


def test_addresses_are_named_as_the_kernel_names_them(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_text(LIST)
    symbols = RunningSymbols(tmp_path / "kallsyms")
    assert symbols.symbol(0xFFFFFFFF81363FA5) == "do_sys_openat2+0x5/0x170"
    assert symbols.symbol(0xFFFFFFFFC0001000) == "helper+0x0/0x40 [ext4]"
    assert symbols.symbol(0xFFFF888000000000) == "0xffff888000000000"


def test_without_a_list_they_are_numbers(tmp_path: Path) -> None:
    assert RunningSymbols(tmp_path / "none").symbol(1 << 63) == hex(1 << 63)
    (tmp_path / "hidden").write_text("0000000000000000 T do_sys_open\n")
    assert RunningSymbols(tmp_path / "hidden").symbol(1 << 63) == hex(1 << 63)


def test_processes_leave_the_kernels_addresses_to_it(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_text(LIST)
    processes = LiveProcesses(RunningSymbols(tmp_path / "kallsyms"))
    assert processes.symbol(0xFFFFFFFF81363FA0) == "do_sys_openat2+0x0/0x170"
    assert processes.symbol(0x1234) == "0x1234"


def test_where_a_return_probe_has_the_function_return_to(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    path.write_text(
        "ffffffff81000000 T _stext\nffffffff81078fa0 T arch_rethook_trampoline\n"
        "ffffffff81078ff0 t arch_rethook_trampoline_callback\n"
    )
    symbols = RunningSymbols(path)
    assert symbols.symbol(0xFFFFFFFF81078FA0) == "[unknown/kretprobe'd]"
    assert symbols.symbol(0xFFFFFFFF81078FA1) == "arch_rethook_trampoline+0x1/0x50"
