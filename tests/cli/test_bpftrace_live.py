"""Scripts beside the bpftrace of this machine: both print the same.

Only if KPROBE_TUI_LIVE_KERNEL is set, as root, where bpftrace is; written for 0.17. What the two
versions print differently is made the same: blank lines, colons behind names of histograms,
`stats()`, truth values, how many probes there are. What BPF does not see is left out: it cannot
fault a page in, so strings are read of pages that the program has touched.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

PROGRAM = r"""
#include <string.h>
#include <unistd.h>
struct node { long id; int a; short s; char c; char text[9]; struct node *next; };
char hello[] = "hello", other[] = "other";
__attribute__((noinline)) long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int neg(int n) { return -n; }
__attribute__((noinline)) int work(struct node *n, const char *s, short k, unsigned char c)
{
    return n->id * k + c + strlen(s) + n->next->a;
}
int main(void)
{
    struct node b = { 2, 20, -3, 'x', "bbb", 0 }, a = { 1, -10, 300, 'y', "aaa", &b };
    for (int i = 0; i < 12; i++)
        work(&a, i % 3 ? hello : other, i - 5, 200 + i);
    for (int i = 0; i < 8; i++)
        neg(i * i);
    fib(10);
    write(3, "nobody", 6);
    usleep(1000);
    return 3;
}
"""
STRUCT = (
    "struct node { long id; int a; short s; char c; char text[9]; struct node *next; };"
    " uprobe:P:work { $n = (struct node *)arg0; "
)
SCRIPTS = (
    "uprobe:P:fib { @ = count(); }",
    "uprobe:P:fib { @[arg0] = count(); }",
    "uprobe:P:fib { @[arg0 & 3] = count(); }",
    "uprobe:P:fib { @ = hist(arg0); }",
    "uprobe:P:fib { @[arg0 % 2] = hist(arg0); }",
    "uprobe:P:fib { @ = lhist(arg0, 0, 10, 2); }",
    "uprobe:P:fib { @ = sum(arg0); @a = avg(arg0); @s = stats(arg0); }",
    "uprobe:P:fib { @[arg0] = stats(arg0); }",
    "uprobe:P:fib { @ = min(arg0); @x = max(arg0); }",
    "uretprobe:P:fib { @ = hist(retval); @s = sum(retval); }",
    "uretprobe:P:neg { @[(int32)retval] = count(); }",
    "uretprobe:P:neg { @ = min((int32)retval); }",
    "uprobe:P:fib /arg0 == 5/ { @ = count(); }",
    "uprobe:P:fib /arg0 > 5 && arg0 < 9 || arg0 == 1/ { @[arg0] = count(); }",
    "uprobe:P:work { @[str(arg1)] = count(); }",
    "uprobe:P:work { @[str(arg1), (int16)arg2] = count(); }",
    'uprobe:P:work /strncmp(str(arg1), "hel", 3) == 0/ { @ = count(); }',
    'uprobe:P:work /str(arg1) == "other"/ { @[arg3] = count(); }',
    r'uprobe:P:work { printf("%s %d %u %x\n", str(arg1), (int16)arg2, arg3, arg3); }',
    r'uprobe:P:work { printf("%5d|%-5d|%05d|%c\n", arg3, arg3, arg3, 65); }',
    r'uprobe:P:work { printf("%s %s %s\n", probe, comm, str(arg1)); }',
    r'uprobe:P:fib { if (arg0 > 8) { printf("big %d\n", arg0); } else { @small = count(); } }',
    "uprobe:P:fib { @n = @n + 1; @m++; } END { print(@n); }",
    "uprobe:P:fib { @a[arg0] = arg0 / 3; @b[arg0] = arg0 % 3; @c[arg0] = arg0 << 2; }",
    "uprobe:P:fib { @a[arg0] = (arg0 ^ 5) | 8; @b[arg0] = ~arg0 & 15; }",
    "uprobe:P:fib { @a[arg0] = arg0 > 3 ? 1 : 0; @b[arg0] = !arg0; }",
    "uprobe:P:fib /arg0 < 2/ { @[arg0] = count(); } END { clear(@); }",
    "uprobe:P:fib { @[arg0] = count(); } END { print(@, 3); clear(@); }",
    "uprobe:P:fib { @[arg0] = sum(arg0 * 1000); } END { print(@, 1, 10); clear(@); }",
    "uprobe:P:fib { @[arg0] = count(); } END { zero(@); }",
    "uprobe:P:fib { @[arg0] = 1; delete(@[5]); delete(@[6]); }",
    "uprobe:P:fib /arg0 == 10/ { $i = 0; while ($i < 5) { @[$i] = $i * $i; $i++; } }",
    r'uprobe:P:fib /arg0 == 10/ { unroll(3) { printf("u"); } printf("\n"); }',
    'uprobe:P:fib /arg0 == 10/ { @t = (1, "two", 3); print(@t); print((1, (2, 3))); }',
    "uprobe:P:main { @s = nsecs; } uretprobe:P:main { @ok = nsecs > @s; delete(@s); }",
    "uprobe:P:fib { @[tid == pid] = count(); }",
    "uprobe:P:fib { @[cpu < 64] = count(); }",
    STRUCT + r'printf("%d %d %d %c\n", $n->id, $n->a, $n->s, $n->c); }',
    STRUCT + r'printf("%s %d\n", $n->text, $n->next->a); }',
    STRUCT + "@[$n->next->id, $n->text] = count(); }",
    STRUCT + "@ = sum($n->s); @n = sum($n->a); }",
    "tracepoint:syscalls:sys_enter_write /args->fd == 3/ { @[comm, args->count] = count(); }",
    "tracepoint:syscalls:sys_exit_write /args->ret == -9/ { @ = count(); }",
    'tracepoint:raw_syscalls:sys_enter /comm == "program" && args->id == 1/ { @ = count(); }',
    'tracepoint:syscalls:sys_enter_*sleep /comm == "program"/ { @[probe] = count(); }',
    "uprobe:P:ne* { @ = count(); }",
    "BEGIN { @x = 1; } uprobe:P:fib /@x == 1/ { @x = 2; @n = count(); }",
    r'BEGIN { printf("begin\n"); } uprobe:P:neg { @ = count(); } END { printf("end\n"); }',
    "uprobe:P:neg { @ = sum((int32)arg0); } uretprobe:P:neg { @r = sum((int32)retval); }",
    "uprobe:P:work { @[arg3 > 205, (int16)arg2 < 0] = count(); }",
    "uprobe:P:work { $s = str(arg1); @[$s] = sum(arg3); }",
    'BEGIN { @a["x"] = 1; @a["y"] = 2; } uprobe:P:main { @a["x"] += 5; @a["y"] -= 1; }',
)

pytestmark = pytest.mark.skipif(
    not os.environ.get("KPROBE_TUI_LIVE_KERNEL") or shutil.which("bpftrace") is None,
    reason="KPROBE_TUI_LIVE_KERNEL is not set, or there is no bpftrace",
)


def same_form(text: str) -> list[str]:
    """The lines of either version in one form."""
    found = []
    for line in text.splitlines():
        line = re.sub(
            r"count (\d+), average (-?\d+), total (-?\d+)",
            r"{ .count = \1, .average = \2, .total = \3 }",
            line.rstrip(),
        )
        line = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", line))
        if line and not re.match(r"Attach(ing|ed) \d+ probe", line):
            found.append(line)
    return found


@pytest.mark.slow
def test_scripts_print_what_they_print_there(tmp_path: Path) -> None:
    program = str(build(tmp_path, "program", PROGRAM, "-g", "-O0"))
    different = []
    for script in SCRIPTS:
        text = script.replace("P:", f"{program}:")
        native = subprocess.run(
            ["bpftrace", "-e", text, "-c", program], capture_output=True, text=True, check=False
        )
        ours = run("bpftrace", "-e", text, "--", program, cwd=tmp_path)
        # Entries that are equal in what they are sorted by stand in any order there.
        there, here = Counter(same_form(native.stdout)), Counter(same_form(ours.out))
        if there != here or (not here and "clear" not in script):
            only = [*(there - here), "but here", *(here - there), ours.err]
            different.append("\n".join((script, *only)))
    assert not different, "\n\n".join(different)
