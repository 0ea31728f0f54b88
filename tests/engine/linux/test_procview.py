"""What /proc/cpuinfo and AT_HWCAP say of the processor is what its CPUID says."""

from pathlib import Path

from compiled import build
from guestrun import run

from engine.arch.x86_64 import X86_64
from engine.linux.net import procnet
from engine.linux.procview import NETWORK_FILES

PROGRAM = r"""
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid(1, &a, &b, &c, &d);
    printf("%u %u %u\n", a, c, d);
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    printf("%u\n", b);
    __get_cpuid(0x80000001, &a, &b, &c, &d);
    printf("%u %u\n", c, d);
    return 0;
}
"""
# arch/x86/include/asm/cpufeatures.h: name to (word of the program's output, bit).
FEATURES = {
    "pni": (1, 0), "pclmulqdq": (1, 1), "ssse3": (1, 9), "fma": (1, 12), "cx16": (1, 13),
    "sse4_1": (1, 19), "sse4_2": (1, 20), "movbe": (1, 22), "popcnt": (1, 23), "aes": (1, 25),
    "xsave": (1, 26), "avx": (1, 28), "f16c": (1, 29), "rdrand": (1, 30), "hypervisor": (1, 31),
    "fpu": (2, 0), "de": (2, 2), "pse": (2, 3), "tsc": (2, 4), "msr": (2, 5), "pae": (2, 6),
    "mce": (2, 7), "cx8": (2, 8), "apic": (2, 9), "sep": (2, 11), "mtrr": (2, 12),
    "pge": (2, 13), "mca": (2, 14), "cmov": (2, 15), "pat": (2, 16), "pse36": (2, 17),
    "clflush": (2, 19), "mmx": (2, 23), "fxsr": (2, 24), "sse": (2, 25), "sse2": (2, 26),
    "ht": (2, 28), "fsgsbase": (3, 0), "bmi1": (3, 3), "avx2": (3, 5), "smep": (3, 7),
    "bmi2": (3, 8), "erms": (3, 9), "adx": (3, 19), "sha_ni": (3, 29), "lahf_lm": (4, 0),
    "abm": (4, 5), "syscall": (5, 11), "nx": (5, 20), "rdtscp": (5, 27), "lm": (5, 29),
}  # fmt: skip


def test_the_processor_is_described_as_it_is(tmp_path: Path) -> None:
    program = build(tmp_path, "cpuid", PROGRAM, "-static")
    words = [int(word) for word in run("run", str(program), cwd=tmp_path).out.split()]
    told = X86_64.linux.cpuinfo
    offered = {name for name, (word, bit) in FEATURES.items() if words[word] >> bit & 1}
    assert set(told["flags"].split()) == offered
    assert X86_64.linux.hwcap[0] == words[2]
    signature = words[0]
    family = (signature >> 8 & 15) + (signature >> 20 & 0xFF)
    model = (signature >> 4 & 15) | (signature >> 12 & 0xF0)
    assert [told[name] for name in ("cpu family", "model", "stepping")] == [
        str(family),
        str(model),
        str(signature & 15),
    ]


def test_the_names_in_proc_net_are_those_of_its_contents() -> None:
    assert tuple(procnet.FILES) == NETWORK_FILES
