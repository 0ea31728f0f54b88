"""Kprobes of Debian's Linux 6.1, in a machine of their own; only if the environment says so.

`KPROBE_TUI_LIVE_MACHINE=1`, with qemu-system-x86 and busybox-static installed; neither root nor
KVM is needed. The machine emulates, and a start of `live` takes it half a minute.
"""

import os
import re
from collections.abc import Iterator

import pytest
from livemachine import KPROBES, SHARE, LiveMachine, live_machine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get(KPROBES), reason=f"boots a machine for minutes: wants {KPROBES}"
    ),
]

WORKER = """
import os, sys, time
open('/proc/self/comm', 'w').write('worker')
while not os.path.exists('go'):
    time.sleep(0.1)
for number in range(20):
    try:
        os.open(f'/no/such/file-{number}', os.O_RDONLY)
    except OSError:
        pass
    file = os.open('/etc/passwd', os.O_RDONLY)
    os.read(file, 3)
    os.read(file, number)
    os.close(file)
open('over', 'w').close()
time.sleep(1000)
"""
START = f"""
rm -f go over out
python3 {SHARE}/worker.py & worker=$!
until grep -q worker /proc/$worker/comm; do sleep 1; done
"""
READY = "until [ -s out ]; do kill -0 $ours || break; sleep 1; done\n"
WORK = "touch go; until [ -e over ]; do sleep 1; done\n"
STOP = "kill -INT $ours; wait $ours; echo ended with $?\n"
PLACES = (
    ("p", "open", "do_sys_openat2 dfd=%di:s32 name=+0(%si):ustring how=+0(%dx):x64[2] by=$comm"),
    ("r", "opened", "do_sys_openat2 ret=$retval:s64"),
    ("p", "inside", "do_sys_openat2+16 ip=%ip:x64 two=+0(%sp):x64[2] f=%di:b4@2/32"),
    ("p", "rd", "vfs_read count=%dx:u64 file=%di:x64 low=%dx:x8"),
    ("r", "readed", "vfs_read $retval sym=$retval:symbol"),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMachine]:
    with live_machine(tmp_path_factory.mktemp("machine")) as found:
        (found.folder / "worker.py").write_text(WORKER)
        yield found


def events(text: str) -> list[str]:
    """The lines of events without their times."""
    return [
        re.sub(r"^ *(\S+) +\[\d+\] \S+ +[\d.]+: ", r"\1 ", line)
        for line in text.splitlines()
        if re.match(r" *\S+-\d+ +\[", line)
    ]


def options(*places: tuple[str, str, str], group: str = "mine") -> str:
    return " ".join(f"-e '{kind}:{group}/{name} {rest}'" for kind, name, rest in places)


def test_it_records_what_the_kernel_shows(machine: LiveMachine) -> None:
    # The kernel's own text of the same definitions, in an instance and a group beside ours.
    theirs = "\n".join(
        f"echo '{kind}:ref/{name} {rest}' >> $T/kprobe_events" for kind, name, rest in PLACES
    )
    said = machine.bash(
        f"""{START}
mkdir $T/instances/ref
{theirs}
echo $worker > $T/instances/ref/set_event_pid
$live {options(*PLACES)} --pid $worker -o out {machine.image} & ours=$!
{READY}
cat $T/kprobe_events
echo 1 > $T/instances/ref/events/ref/enable
{WORK}
{STOP}
echo 0 > $T/instances/ref/events/ref/enable
kill $worker
cat $T/instances/ref/trace > theirs
rmdir $T/instances/ref
echo '-:ref/' >> $T/kprobe_events
cp out theirs {SHARE}; left
"""
    )
    assert "ended with 0" in said
    assert "Error" not in said
    assert said.splitlines()[-1] == "ended with 0", said
    ours = events((machine.folder / "out").read_text())
    kernels = events((machine.folder / "theirs").read_text())
    assert len(ours) == len(kernels) > 190
    for own, other in zip(ours, kernels, strict=True):
        if "kretprobe'd" in other:  # of two probes on one return the other one knows the caller
            assert "sys_" in own
            own, other = (re.sub(r"\(.* <- ", "(", text) for text in (own, other))
        assert own == other


def test_everybody_is_recorded_and_a_kill_leaves_nothing_for_long(machine: LiveMachine) -> None:
    said = machine.bash(
        f"""{START}
$live -e 'r:mine/readed vfs_read $retval' -e 'p:mine/rd vfs_read count=%dx:u64' \
    --filter 'mine/rd:count == 3' -o out {machine.image} & ours=$!
{READY}
{WORK}
until [ "$(grep -c 'worker.* rd: ' out)" -ge 21 ]; do sleep 1; done
kill -9 $ours; wait $ours; kill $worker
cp out {SHARE}/killed; echo "recorded by $ours"
left
echo then
{START}
$live -e 'p:mine/open do_sys_openat2 name=+0(%si):ustring' --pid $worker \
    --trigger 'mine/open:hist:keys=common_pid' -o out {machine.image} & ours=$!
{READY}
{WORK}
{STOP}
kill $worker
cp out {SHARE}; left
"""
    )
    before, _, after = said.partition("then\n")
    assert len(re.findall(r"^[pr]\d*:kprobe_tui_live_\w+/", before, re.MULTILINE)) == 2
    assert len(re.findall(r"^kprobe_tui_live_\w+$", before, re.MULTILINE)) == 1
    assert after == "ended with 0\n"
    recorder = re.search(r"recorded by (\d+)", before)
    assert recorder is not None
    # 20 times three bytes, and as many as its number once.
    killed = events((machine.folder / "killed").read_text())
    assert [line for line in killed if f"-{recorder[1]} " in line] == []
    assert sum("worker-" in line and " rd: " in line for line in killed) == 21
    assert all(line.endswith("count=3") for line in killed if " rd: " in line)
    assert re.search(r"Hits: \d{2}", (machine.folder / "out").read_text())


def test_what_the_kernel_refuses_of_its_image_in_boot(machine: LiveMachine) -> None:
    said = machine.bash(
        f"""
echo 'p:ref/x do_int3' >> $T/kprobe_events
mkdir boot; cp {machine.image} boot/vmlinuz-$(uname -r); mount --bind boot /boot
$live -e 'p:mine/x do_int3' --duration 1  # GUEST is where distributions have it
echo "ended with $?"; cat $T/error_log; left
"""
    )
    refused = re.search("^kprobe-tui: the running kernel refuses '(.*)': (.*)", said, re.MULTILINE)
    assert refused is not None
    assert refused[1].endswith("/x do_int3")
    assert refused[2].startswith("Failed to register probe event, at 'do_int3' (EINVAL): ")
    assert "do_int3 is on the kernel's blacklist" in refused[2]
    assert "ended with 2" in said
    assert said.count("trace_kprobe: error: Failed to register probe event") == 2
