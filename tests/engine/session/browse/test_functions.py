"""The functions of a file: all of them, and those that match."""

from bisect import bisect_right

from controlkit import sample
from kernelimages import AMD64_61, image_path, module_path

from engine.session.browse.browser import Browser
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import KernelChoice


def test_those_of_a_program_by_address() -> None:
    browser = Browser(GuestConfig(sample("x86_64", "recursion")))
    functions = browser.functions
    rows = [functions[number] for number in range(len(functions))]
    assert [row.address for row in rows] == sorted(row.address for row in rows)
    names = [row.name for row in rows]
    assert {"main", "factorial", "fibonacci", "ackermann"} <= set(names)
    ackermann = rows[names.index("ackermann")]
    assert (ackermann.size, ackermann.section, ackermann.module) == (0x34, ".text", "")
    found = [functions[number].name for number in functions.matching("fact")]
    assert found == ["factorial"]
    assert [functions[n].name for n in functions.matching("f*i*")] == [
        name for name in names if name[:1] == "f" and "i" in name
    ]
    assert len(functions.matching("in:.text")) == len(functions)
    assert not functions.matching("in:.init*")
    assert not functions.matching("FACT")
    assert browser.kind_at(ackermann.address) == ""  # no guest: it is nowhere yet


def test_those_of_a_module_and_its_kernel() -> None:
    choice = KernelChoice(kernel=str(image_path(AMD64_61)))
    browser = Browser(GuestConfig(str(module_path("crc16")), kernel=choice))
    functions = browser.functions
    assert len(functions) > 49_000
    assert functions[0].name == "crc16"
    (only,) = functions.matching("mod:crc16")
    assert only == 0
    found = {functions[n].name for n in functions.matching("vfs_read")}
    assert {"vfs_read", "vfs_readv"} <= found
    init = [functions[n].name for n in functions.matching("in:.init.text start_kernel")]
    assert "start_kernel" in init
    assert not functions.matching("in:.init.text vfs_read")
    opened = browser.opened.kernel
    assert opened is not None
    assert opened.image.kernel is not None
    addresses = sorted(set(opened.image.kernel.names.addresses))
    aliases = 0
    for number in range(1, len(functions), 7):
        row, before = functions[number], functions[number - 1]
        behind = bisect_right(addresses, row.address)
        assert row.size == addresses[behind] - row.address
        aliases += row.address == before.address
    assert aliases, "names of one place have the same size"
