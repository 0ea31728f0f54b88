"""Scripts on a kernel that has just begun to boot: places, values, timers, and the end."""

import pytest
from bootkit import needs_host_code
from kernelimages import AMD64_61, image_path

from engine.machine.machine import BootEnd
from engine.session.headless.boot_scripts import opened_boot_script
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.scripts import BootScriptRequest
from engine.trace.bpftrace.text import WrongScriptError

pytestmark = needs_host_code
SCRIPT = r"""
BEGIN { printf("begin %d '%s'\n", nsecs, comm); }
kprobe:kmem_cache_create / @n == 0 / {
    printf("%s %d %s %s %s\n", probe, pid, comm, func, str(arg0));
    printf("%s\n", kstack(2));
    printf("%s\n", str(kaddr("linux_banner")));
    printf("%d %d %d %s %d\n", uid, curtask->prio, usermode, str(reg("di")), cpu);
    printf("%r\n", buf(kaddr("linux_banner"), 5));
}
kprobe:kmem_cache_create+5 { @inside = count(); }
kretprobe:kmem_cache_create {
    @n += 1;
    @sizes[((struct kmem_cache *)retval)->object_size] = count();
}
fentry:kmem_cache_create { @[str(args.name)] = args.size; }
fexit:kmem_cache_create {
    if (args.size != retval->object_size) { errorf("size"); }
    if (@n > 5) { exit(7); }
}
interval:ms:10 { @ms = count(); @late = max(elapsed % 10000000); }
END { printf("end %d\n", elapsed / 1000000); }
"""


def outcome(script: str, form: str = "text") -> tuple[str, BootEnd, int | None, str]:
    """What a script prints, how its boot ends, its exit code, its warnings."""
    printed, warned = bytearray(), bytearray()
    boot = BootRequest(str(image_path(AMD64_61)), append="quiet")
    request = BootScriptRequest("stdin", script, quiet=True, format=form)
    with opened_boot_script(
        boot, request, lambda data: None, None, printed.extend, warned.extend
    ) as scripted:
        end = scripted.run()
        assert not scripted.remarks()
    scripted.booted.machine.close()
    return printed.decode(), end.reason, scripted.exit_code, warned.decode()


@pytest.mark.slow
def test_a_script_sees_a_kernel_begin_and_ends_it() -> None:
    text, reason, code, warned = outcome(SCRIPT)
    assert (reason, code) == (BootEnd.OFF, 7)
    assert "size" not in warned
    lines = [line for line in text.splitlines() if line]
    assert lines[:2] == [
        "begin 0 ''",
        "kprobe:kmem_cache_create 0 swapper kmem_cache_create vmap_area",
    ]
    assert lines[2:4] == ["        kmem_cache_create+0", "        vmalloc_init+51"]
    assert lines[4].startswith("Linux version 6.1.0-")
    assert lines[5:7] == ["0 120 0 vmap_area 0", "Linux"]
    maps = dict(line.split(": ") for line in lines if line.startswith("@"))
    sizes = {key: int(value) for key, value in maps.items() if key.startswith("@[")}
    assert sizes["@[radix_tree_node]"] == 576
    assert sum(int(value) for key, value in maps.items() if key.startswith("@sizes")) == 6
    assert (maps["@n"], maps["@inside"]) == ("6", "6")
    assert len(sizes) == 6
    over = int(lines[7].removeprefix("end "))
    assert 100 < over < 1000
    assert int(maps["@ms"]) == over // 10
    assert int(maps["@late"]) < 10_000  # nanoseconds


def test_a_script_ends_a_boot_before_it_begins() -> None:
    text, reason, code, _ = outcome(
        "BEGIN { @a = 1; exit(3); } kprobe:vfs_read { @b = 1; }", "json"
    )
    assert (reason, code) == (BootEnd.OFF, 3)
    assert text == '{"type": "map", "data": {"@a": 1}}\n'


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("kprobe:start_kernel { }", "kprobe:start_kernel: start_kernel is notrace"),
        ("kprobe:vfs_read+1 { }", "vfs_read+1"),
        ("kprobe:no_such { }", "kprobe:MODULE:FUNCTION waits for a module"),
        ('kprobe:vfs_read { print(reg("nothing")); }', "nothing"),
        ("kprobe:vfs_read, kprobe:no_such { }", "No matches for kprobe no_such."),
        ("kprobe:no_such* { } kprobe:vfs_read { }", "Probe has no valid attach points."),
        ("rawtracepoint:other:sys_exit { }", "No matches for rawtracepoint other:sys_exit."),
    ],
)
def test_a_probe_that_is_nowhere_is_an_error_at_its_place(script: str, told: str) -> None:
    with pytest.raises(WrongScriptError) as failure:
        outcome(script)
    assert told in str(failure.value)
    assert str(failure.value).startswith("stdin:1:")


@pytest.mark.slow
def test_actions_of_a_place_run_in_the_order_of_the_text() -> None:
    """Also beside places that are not there, which the script allows."""
    text, *_ = outcome(
        "config = { missing_probes = warn }"
        ' kretprobe:kmem_cache_create { print("fourth"); } fexit:kmem_cache_create'
        ' { print("fifth"); exit(); } kprobe:kmem_cache_create,kprobe:no_such { print("first"); }'
        ' kprobe:kmem_cache_c*e { print("second"); } fentry:kmem_cache_create,kprobe:no_such*'
        ' { print("third"); } t:no:such { print(args.nothing); }'
    )
    assert text.split() == ["first", "second", "third", "fourth", "fifth"]
