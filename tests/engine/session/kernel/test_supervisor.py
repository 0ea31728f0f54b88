"""Functions of real kernels give what Python computes for the same arguments."""

import binascii
import hashlib
import math
import struct
import zlib

import lz4.block
import pytest
from calledkernel import buffer_of, called, in_module
from kernelimages import AMD64_61, SLOW_612, SLOW_ARM64, UML_61

from engine.errors import CommandError

KERNELS = (AMD64_61, SLOW_612, SLOW_ARM64)
TEXT = "The quick brown fox jumps over the lazy dog. " * 3


@pytest.mark.parametrize("name", KERNELS)
def test_library_functions_compute_what_python_does(name: str) -> None:
    numbers = (0, 1, 24, 25, 1_000_000, (1 << 62) - 1)
    values = {
        **{f"int_sqrt({number})": math.isqrt(number) for number in numbers},
        "gcd(48, 180)": math.gcd(48, 180),
        "lcm(48, 180)": math.lcm(48, 180),
        f'strlen("{TEXT}")': len(TEXT),
        'strcmp("abc", "abc")': 0,
        'strncasecmp("ABC", "abd", 3)': -1,
        f'crc32_le(0xffffffff, "{TEXT}", {len(TEXT)})': zlib.crc32(TEXT.encode()) ^ 0xFFFFFFFF,
        'kstrtoull("0x1f", 16, &number)': 0,
        'hex2bin(&raw[4], "deadbeef", 4)': 0,
    }
    more = (
        f'sha256("{TEXT}", {len(TEXT)}, &digest[32])',
        'snprintf(&text[40], 40, "%d-%pI4-%s-%x", -42, (u8[]){1,2,3,4}, "up", 255)',
        'kstrdup("copied", GFP_KERNEL)',
    )
    results = called(name, *values, *more)
    assert [result.failure for result in results] == [""] * len(results)
    assert {r.text: r.value for r in results[: len(values)]} == values
    digest, text, copied = results[len(values) :]
    assert buffer_of(digest, "digest") == hashlib.sha256(TEXT.encode()).digest()
    assert buffer_of(text, "text").split(b"\0")[0] == b"-42-1.2.3.4-up-ff"
    assert buffer_of(text, "raw") == binascii.unhexlify("deadbeef")
    assert copied.shown.endswith('"copied"')
    shown = {each.name: each.shown for each in results[len(values) - 2].buffers}
    assert shown == {"number": "31"}


@pytest.mark.parametrize("name", KERNELS)
def test_objects_are_made_and_shown_by_type(name: str) -> None:
    wanted, whole, moved = called(
        name,
        "timespec64_add_safe((struct timespec64){1, 600000000}, (struct timespec64){.tv_nsec ="
        " 700000000, .tv_sec = 2})",
        "set_normalized_timespec64(&ts, 5, 1500000000)",
        'match_token("ro", (struct match_token[]){{1, "rw"}, {.token = 7, .pattern = "ro"},'
        " {9, NULL}}, &args[48])",
    )
    assert (wanted.type, wanted.shown) == (
        "struct timespec64",
        "{tv_sec = 4, tv_nsec = 300000000}",
    )
    (ts,) = whole.buffers
    assert (ts.name, ts.shown, ts.changed) == ("ts", "{tv_sec = 6, tv_nsec = 500000000}", True)
    assert moved.value == 7


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_printed_is_shown(name: str) -> None:
    (result,) = called(name, r'_printk("\0016%s has %d of %u%%\n", "it", -3, 7)')
    assert result.printed == "it has -3 of 7%\n"
    assert result.failure == ""


@pytest.mark.parametrize("name", KERNELS)
def test_what_needs_a_running_kernel_ends_with_the_reason(name: str) -> None:
    (sleep,) = called(name, "msleep(5)", "gcd(12, 18)")
    assert sleep.failure == "msleep: it sleeps; called from the call itself"
    (bad,) = called(name, "strcmp(0x10, 0x20)")
    assert "where nothing is mapped" in bad.failure
    assert "strcmp" in bad.failure


@pytest.mark.parametrize("name", KERNELS)
def test_faults_that_the_kernel_expects_are_its_own(name: str) -> None:
    there, gone, word, warned = called(
        name,
        'copy_from_kernel_nofault(&out[4], "abcd", 4)',
        "copy_from_kernel_nofault(out, 0xffff000000000100, 4)",
        '_copy_from_user(out, __user "wxyz", 4)',
        "kvfree(0)",
    )
    assert (there.value, buffer_of(there, "out")) == (0, b"abcd")
    assert gone.value == -14
    assert (word.value, buffer_of(word, "out")) == (0, b"wxyz")
    assert warned.failure == ""


def test_a_call_that_does_not_end_is_ended() -> None:
    (slow,) = called(AMD64_61, f'crc32_le(0, "{TEXT}", {len(TEXT)})', blocks=5)
    assert slow.failure == "it did not return within 5 blocks"


def test_arguments_are_those_of_the_prototype() -> None:
    for text, why in (
        ("gcd(1)", r"1 arguments; gcd takes 2: \(unsigned long a, "),
        ("nosuch(1)", "no function nosuch"),
        ("strlen(nosuch)", "neither a buffer nor a symbol"),
        ("hex_to_bin(300)", "300 does not fit"),
        ("strlen(&what)", r"&what: how large is it"),
        ("strlen(&(struct nosuch){1})", "no type struct nosuch"),
        ("strlen(&(struct qstr){.nosuch = 1})", r"\.nosuch: struct qstr has no such member"),
        ("timespec64_add_safe(1, 2)", r"a structure is needed, as \(struct timespec64\)"),
    ):
        with pytest.raises(CommandError, match=why):
            called(AMD64_61, text)


def test_memory_is_aligned_as_allocators_align_it() -> None:
    aligned = {
        "__kmalloc(96, GFP_KERNEL)": 64,
        "__kmalloc(512, GFP_KERNEL)": 512,
        "__kmalloc(8192, GFP_KERNEL)": 8192,
        "__kmalloc(5000, GFP_KERNEL)": 4096,
        "vmalloc(100)": 4096,
        "get_zeroed_page(GFP_KERNEL)": 4096,
        "__get_free_pages(GFP_KERNEL, 3)": 8 * 4096,
    }
    between = "__kmalloc(8, GFP_KERNEL)"
    calls = [call for each in aligned for call in (between, each)]
    page = "memset(&page[4096], 1, 4)", 'sysfs_emit(page, "%d", 17)'
    *found, _, emitted = called(AMD64_61, *calls, *page)
    for result, align in zip(found[1::2], aligned.values(), strict=True):
        assert result.value, result.text
        assert result.value % align == 0, result.text
    assert (emitted.value, emitted.printed) == (2, "")  # no WARN


def test_objects_of_a_cache_one_or_many() -> None:
    cache = "&(struct kmem_cache){.object_size = 96}"
    one, many, none, more = called(
        AMD64_61,
        f"kmem_cache_alloc({cache}, GFP_KERNEL)",
        f"kmem_cache_alloc_bulk({cache}, GFP_KERNEL, 3, &found[24])",
        f"kmem_cache_alloc_bulk({cache}, GFP_KERNEL, 0x7fffffff, found)",
        f"kmem_cache_alloc({cache}, GFP_KERNEL)",
    )
    places = struct.unpack("<3Q", buffer_of(many, "found"))
    assert (many.value, len({one.value, *places})) == (3, 4)
    assert all(place and place % 64 == 0 for place in places)
    assert (none.value, none.failure) == (0, "")
    assert more.value
    (nowhere,) = called(AMD64_61, f"kmem_cache_alloc_bulk({cache}, GFP_KERNEL, 3, 0x10)")
    assert nowhere.failure.startswith("kmem_cache_alloc_bulk: cannot write guest memory at 0x10;")


def test_what_is_freed_twice_is_told() -> None:
    _, freed, twice = called(AMD64_61, "memset(&buf[8], 1, 8)", "kfree(buf)", "kfree(buf)")
    assert freed.failure == ""
    assert "is freed twice" in twice.failure


def test_functions_of_modules() -> None:
    nine = '"123456789", 9'
    assert in_module("crc16", f"crc16(0, {nine})")[0].value == 0xBB3D
    itu = in_module("crc-itu-t", f"crc_itu_t(0, {nine})")[0]
    assert itu.value == binascii.crc_hqx(b"123456789", 0)
    assert in_module("crc7", f"crc7_be(0, {nine})")[0].value == 0x75 << 1
    assert in_module("crc64", f"crc64_be(0, {nine})")[0].value == 0x6C40DF5F0B497347
    crc8 = in_module("crc8", "crc8_populate_msb(&table[256], 7)", f"crc8(table, {nine}, 0)")
    assert crc8[1].value == 0xF4
    key, crypt = in_module(
        "libarc4",
        'arc4_setkey(&context, "Key", 3)',
        'arc4_crypt(context, &out[9], "Plaintext", 9)',
    )
    assert key.value == 0
    assert buffer_of(crypt, "out").hex() == "bbf316e8d940af0ad3"
    (cordic,) = in_module("cordic", "cordic_calc_iq(30)")
    assert cordic.shown.startswith("{i = ")
    parts = [int(part.split("= ")[1]) / 65536 for part in cordic.shown.strip("{}").split(", ")]
    assert parts == pytest.approx([math.cos(math.pi / 6), math.sin(math.pi / 6)], abs=1e-3)


def test_what_a_module_compresses_python_unpacks() -> None:
    (result,) = in_module(
        "lz4_compress",
        f'LZ4_compress_default("{TEXT}", &out[400], {len(TEXT)}, 400, &work[16416])',
    )
    assert result.value is not None
    packed = buffer_of(result, "out")[: result.value]
    assert lz4.block.decompress(packed, uncompressed_size=len(TEXT)) == TEXT.encode()


def test_what_lies_with_the_processor_is_there() -> None:
    (result,) = called(AMD64_61, "get_random_u32()")
    assert result.failure == ""
    (solomon,) = in_module("reed_solomon", "init_rs_gfp(8, 0x11d, 0, 1, 32, GFP_KERNEL)")
    assert solomon.failure == ""
    assert "<" not in solomon.shown


def test_user_mode_linux_has_functions_without_types() -> None:
    (result,) = called(UML_61, "int_sqrt(1000000)")
    assert (result.value, result.type, result.shown) == (1000, "", "0x3e8 (1000)")
