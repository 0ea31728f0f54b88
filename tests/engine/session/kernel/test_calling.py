"""Functions of real kernels give what Python computes for the same arguments."""

import binascii
import hashlib
import math
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import lz4.block
import pytest
from kernelimages import AMD64_61, AMD64_612, ARM64_61, UML_61, image_path, module_path

from engine.errors import CommandError
from engine.session.kernel.call_syntax import read_call
from engine.session.kernel.calling import CallResult, KernelCaller
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice

KERNELS = (AMD64_61, AMD64_612, ARM64_61)
TEXT = "The quick brown fox jumps over the lazy dog. " * 3


@lru_cache(maxsize=2)
def opened(path: Path, kernel: Path | None = None) -> OpenedKernel:
    """An image with its live text."""
    return OpenedKernel.open(path, KernelChoice(kernel=None if kernel is None else str(kernel)))


def caller(name: str, blocks: int = 10_000_000) -> KernelCaller:
    """A kernel whose functions can be called."""
    return KernelCaller(opened(image_path(name)), blocks)


def in_module(module: str) -> Callable[[str], CallResult]:
    """Calls functions of a module."""
    loaded = KernelCaller(opened(module_path(module), image_path(AMD64_61)), 10_000_000)
    return lambda text: loaded.call(read_call(text))


def buffer(result: CallResult, name: str) -> bytes:
    """The bytes of a buffer behind a call."""
    return next(each.data for each in result.buffers if each.name == name)


@pytest.mark.parametrize("name", KERNELS)
def test_library_functions_compute_what_python_does(name: str) -> None:
    kernel = caller(name)

    def value(text: str) -> int | None:
        result = kernel.call(read_call(text))
        assert result.failure == "", text
        return result.value

    for number in (0, 1, 24, 25, 1_000_000, (1 << 62) - 1):
        assert value(f"int_sqrt({number})") == math.isqrt(number)
    assert value("gcd(48, 180)") == math.gcd(48, 180)
    assert value("lcm(48, 180)") == math.lcm(48, 180)
    assert value(f'strlen("{TEXT}")') == len(TEXT)
    assert value('strcmp("abc", "abc")') == 0
    assert value('strncasecmp("ABC", "abd", 3)') == -1
    assert value(f'crc32_le(0xffffffff, "{TEXT}", {len(TEXT)})') == (
        zlib.crc32(TEXT.encode()) ^ 0xFFFFFFFF
    )
    digest = kernel.call(read_call(f'sha256("{TEXT}", {len(TEXT)}, &digest[32])'))
    assert buffer(digest, "digest") == hashlib.sha256(TEXT.encode()).digest()
    words = kernel.call(read_call('kstrtoull("0x1f", 16, &number[8])'))
    assert words.value == 0
    assert int.from_bytes(buffer(words, "number"), "little") == 0x1F
    text = kernel.call(
        read_call('snprintf(&text[40], 40, "%d-%pI4-%s-%x", -42, (u8[]){1,2,3,4}, "up", 255)')
    )
    assert buffer(text, "text").split(b"\0")[0] == b"-42-1.2.3.4-up-ff"
    raw = kernel.call(read_call('hex2bin(&raw[4], "deadbeef", 4)'))
    assert buffer(raw, "raw") == binascii.unhexlify("deadbeef")
    copied = kernel.call(read_call('kstrdup("copied", 0)'))
    assert copied.shown.endswith('"copied"')


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_printed_is_shown(name: str) -> None:
    result = caller(name).call(read_call(r'_printk("\x016%s has %d of %u%%\n", "it", -3, 7)'))
    assert result.printed == "it has -3 of 7%\n"
    assert result.failure == ""


@pytest.mark.parametrize("name", KERNELS)
def test_what_needs_a_running_kernel_ends_with_the_reason(name: str) -> None:
    kernel = caller(name, 100_000)
    sleep = kernel.call(read_call("msleep(5)"))
    assert sleep.failure == "msleep+0x0: it sleeps; called from the call itself"
    bad = kernel.call(read_call("strcmp(0x10, 0x20)"))
    assert "where nothing is mapped" in bad.failure
    assert "strcmp" in bad.failure
    again = kernel.call(read_call("gcd(12, 18)"))
    assert (again.value, again.type) == (6, "unsigned long")


def test_a_call_that_does_not_end_is_ended() -> None:
    slow = caller(AMD64_61, 5).call(read_call(f'crc32_le(0, "{TEXT}", {len(TEXT)})'))
    assert slow.failure == "it did not return within 5 blocks"


def test_arguments_are_those_of_the_prototype() -> None:
    kernel = caller(AMD64_61)
    with pytest.raises(CommandError, match=r"1 arguments; gcd takes 2: \(unsigned long a, "):
        kernel.call(read_call("gcd(1)"))
    with pytest.raises(CommandError, match="no function nosuch"):
        kernel.call(read_call("nosuch(1)"))
    with pytest.raises(CommandError, match="neither a buffer nor a symbol"):
        kernel.call(read_call("strlen(nosuch)"))


def test_functions_of_modules() -> None:
    nine = '"123456789", 9'
    assert in_module("crc16")(f"crc16(0, {nine})").value == 0xBB3D
    assert in_module("crc-itu-t")(f"crc_itu_t(0, {nine})").value == binascii.crc_hqx(
        b"123456789", 0
    )
    assert in_module("crc7")(f"crc7_be(0, {nine})").value == 0x75 << 1
    assert in_module("crc64")(f"crc64_be(0, {nine})").value == 0x6C40DF5F0B497347
    crc8 = in_module("crc8")
    crc8("crc8_populate_msb(&table[256], 7)")
    assert crc8(f"crc8(table, {nine}, 0)").value == 0xF4
    arc4 = in_module("libarc4")
    assert arc4('arc4_setkey(&context[1032], "Key", 3)').value == 0
    out = buffer(arc4('arc4_crypt(context, &out[9], "Plaintext", 9)'), "out")
    assert out.hex() == "bbf316e8d940af0ad3"
    cordic = in_module("cordic")("cordic_calc_iq(30)")
    assert cordic.shown.startswith("{i = ")
    parts = [int(part.split("= ")[1]) / 65536 for part in cordic.shown.strip("{}").split(", ")]
    assert parts == pytest.approx([math.cos(math.pi / 6), math.sin(math.pi / 6)], abs=1e-3)


def test_what_a_module_compresses_python_unpacks() -> None:
    result = in_module("lz4_compress")(
        f'LZ4_compress_default("{TEXT}", &out[400], {len(TEXT)}, 400, &work[16416])'
    )
    assert result.value is not None
    packed = buffer(result, "out")[: result.value]
    assert lz4.block.decompress(packed, uncompressed_size=len(TEXT)) == TEXT.encode()


def test_what_lies_with_the_processor_is_there() -> None:
    result = caller(AMD64_61).call(read_call("get_random_u32()"))
    assert result.failure == ""
    solomon = in_module("reed_solomon")("init_rs_gfp(8, 0x11d, 0, 1, 32, 0xcc0)")
    assert solomon.failure == ""
    assert "<" not in solomon.shown


def test_user_mode_linux_has_functions_without_types() -> None:
    result = caller(UML_61).call(read_call("int_sqrt(1000000)"))
    assert (result.value, result.type, result.shown) == (1000, "", "0x3e8 (1000)")
