"""Texts of the files in /proc, in the formats of proc(5)."""

import itertools
import os
from collections.abc import Mapping

from engine.guest.mapping import page_up
from engine.linux.clock import Clock
from engine.linux.cpus import list_text, mask_text
from engine.linux.fs import devices
from engine.linux.fs.procsource import VSYSCALLS, MapEntry, ProcProcess, ProcStatus

_PAGE = 4096
_SECOND = 1_000_000_000
_TICK = _SECOND // 100

FILESYSTEMS = b"nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tcgroup2\nnodev\tpipefs\n\text4\n"

MOUNTS = (
    b"overlay / overlay rw,relatime 0 0\n"
    b"proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
    b"sysfs /sys sysfs ro,nosuid,nodev,noexec,relatime 0 0\n"
    b"cgroup2 /sys/fs/cgroup cgroup2 ro,nosuid,nodev,noexec,relatime 0 0\n"
    b"dev /dev tmpfs rw,nosuid,relatime 0 0\n"
    b"tmpfs /dev/shm tmpfs rw,nosuid,nodev,relatime 0 0\n"
)

ID_MAP = b"%10d %10d %10d\n" % (0, 0, 0xFFFF_FFFF)
"""uid_map, gid_map and projid_map of a process that is in the first user namespace."""

SWAPS = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

SYSCTLS: Mapping[bytes, bytes] = {
    b"sys/kernel/ostype": b"Linux\n",
    b"sys/kernel/version": b"#1 SMP\n",
    b"sys/kernel/overflowgid": b"65534\n",
    b"sys/kernel/overflowuid": b"65534\n",
    b"sys/kernel/pid_max": b"32768\n",
    b"sys/kernel/ngroups_max": b"65536\n",
    b"sys/kernel/cap_last_cap": b"40\n",
    b"sys/kernel/random/entropy_avail": b"256\n",
    b"sys/kernel/random/poolsize": b"256\n",
    b"sys/kernel/randomize_va_space": b"0\n",
    b"sys/kernel/threads-max": b"32768\n",
    b"sys/kernel/unprivileged_userns_clone": b"0\n",  # Debian's; clone and unshare refuse them
    b"sys/vm/overcommit_memory": b"0\n",
    b"sys/vm/max_map_count": b"65530\n",
    b"sys/vm/mmap_min_addr": b"65536\n",
    b"sys/fs/file-max": b"1048576\n",
    b"sys/fs/nr_open": b"1048576\n",
    b"sys/fs/pipe-max-size": b"1048576\n",
    **{
        b"sys/user/max_%s_namespaces" % kind: b"16384\n"
        for kind in (b"cgroup", b"ipc", b"mnt", b"net", b"pid", b"time", b"user", b"uts")
    },
    b"sys/net/core/somaxconn": b"4096\n",
    b"sys/net/core/rmem_default": b"212992\n",
    b"sys/net/core/rmem_max": b"212992\n",
    b"sys/net/core/wmem_default": b"212992\n",
    b"sys/net/core/wmem_max": b"212992\n",
    b"sys/net/unix/max_dgram_qlen": b"10\n",
    b"sys/net/ipv4/ip_local_port_range": b"32768\t60999\n",
    b"sys/net/ipv4/ip_unprivileged_port_start": b"1024\n",
    b"sys/net/ipv4/ping_group_range": b"1\t0\n",
    b"sys/net/ipv4/tcp_max_syn_backlog": b"4096\n",
    b"sys/net/ipv4/tcp_fin_timeout": b"60\n",
    b"sys/net/ipv4/tcp_keepalive_time": b"7200\n",
    b"sys/net/ipv4/tcp_keepalive_intvl": b"75\n",
    b"sys/net/ipv4/tcp_keepalive_probes": b"9\n",
    b"sys/net/ipv4/tcp_rmem": b"4096\t131072\t6291456\n",
    b"sys/net/ipv4/tcp_wmem": b"4096\t16384\t4194304\n",
    b"sys/net/ipv4/tcp_fastopen": b"0\n",
    b"sys/net/ipv4/tcp_congestion_control": b"cubic\n",
    b"sys/net/ipv6/bindv6only": b"0\n",
    b"sys/net/ipv6/conf/all/disable_ipv6": b"0\n",
    b"sys/net/ipv6/conf/default/disable_ipv6": b"0\n",
    b"sys/net/ipv6/conf/lo/disable_ipv6": b"0\n",
}

_LIMITS = (
    ("cpu", "Max cpu time", "seconds"),
    ("fsize", "Max file size", "bytes"),
    ("data", "Max data size", "bytes"),
    ("stack", "Max stack size", "bytes"),
    ("core", "Max core file size", "bytes"),
    ("rss", "Max resident set", "bytes"),
    ("nproc", "Max processes", "processes"),
    ("nofile", "Max open files", "files"),
    ("memlock", "Max locked memory", "bytes"),
    ("as", "Max address space", "bytes"),
    ("locks", "Max file locks", "locks"),
    ("sigpending", "Max pending signals", "signals"),
    ("msgqueue", "Max msgqueue size", "bytes"),
    ("nice", "Max nice priority", ""),
    ("rtprio", "Max realtime priority", ""),
    ("rttime", "Max realtime timeout", "us"),
)


def uuid(raw: bytes) -> bytes:
    """A random UUID as the kernel prints it."""
    data = bytearray(raw)
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    digits = data.hex().encode()
    cuts = (0, 8, 12, 16, 20, 32)
    return b"-".join(digits[a:b] for a, b in itertools.pairwise(cuts)) + b"\n"


def meminfo(total: int, free: int) -> bytes:
    """/proc/meminfo of a machine with so many bytes of memory."""
    used = total - free
    sizes = (
        *((b"MemTotal", total), (b"MemFree", free), (b"MemAvailable", free), (b"Buffers", 0)),
        *((b"Cached", 0), (b"SwapCached", 0), (b"Active", used), (b"Inactive", 0)),
        *((b"SwapTotal", 0), (b"SwapFree", 0), (b"Dirty", 0), (b"Writeback", 0)),
        *((b"AnonPages", used), (b"Mapped", 0), (b"Shmem", 0), (b"Slab", 0)),
        *((b"SReclaimable", 0), (b"SUnreclaim", 0), (b"KernelStack", 0), (b"PageTables", 0)),
        *((b"CommitLimit", total >> 1), (b"Committed_AS", used)),
    )
    lines = [b"%-16s%8d kB\n" % (name + b":", size >> 10) for name, size in sizes]
    lines += [b"%-16s%8d\n" % (name + b":", 0) for name in (b"HugePages_Total", b"HugePages_Free")]
    return b"".join((*lines, b"%-16s%8d kB\n" % (b"Hugepagesize:", 2048)))


def vmstat(total: int, free: int) -> bytes:
    """/proc/vmstat; nothing is paged."""
    used = total - free
    known = {b"nr_free_pages": free, b"nr_active_anon": used, b"nr_anon_pages": used}
    names = (
        *known,
        *(b"nr_inactive_anon", b"nr_inactive_file", b"nr_active_file", b"nr_mapped"),
        *(b"nr_file_pages", b"nr_dirty", b"nr_writeback", b"nr_shmem", b"pgpgin", b"pgpgout"),
        *(b"pswpin", b"pswpout", b"pgalloc_normal", b"pgfree", b"pgfault", b"pgmajfault"),
        *(b"pgscan_kswapd", b"pgscan_direct", b"pgsteal_kswapd", b"oom_kill"),
    )
    return b"".join(b"%s %d\n" % (name, known.get(name, 0) // _PAGE) for name in names)


def version(release: bytes) -> bytes:
    """/proc/version."""
    return b"Linux version " + release + b" (kprobe-tui) #1 SMP\n"


def uptime(clock: Clock, busy: int) -> bytes:
    """/proc/uptime, with the nanoseconds that the first processor was busy."""
    passed = clock.monotonic() // _TICK
    idle = max(clock.monotonic() - busy, 0) // _TICK
    return b"%d.%02d %d.%02d\n" % (*divmod(passed, 100), *divmod(idle, 100))


def machine_stat(clock: Clock, cpus: int, busy: int) -> bytes:
    """/proc/stat; all time is the first processor's: busy for so many nanoseconds, or idle."""
    ticks = clock.monotonic() // _TICK
    boot = (clock.realtime() - clock.monotonic()) // _SECOND
    user = min(busy // _TICK, ticks)
    numbers = b"%d 0 0 %d 0 0 0 0 0 0\n" % (user, ticks - user)
    return (
        b"cpu  " + numbers + b"cpu0 " + numbers
        + b"".join(b"cpu%d 0 0 0 0 0 0 0 0 0 0\n" % number for number in range(1, cpus))
        + b"intr 0\nctxt 0\nbtime %d\n" % boot
        + b"processes 1\nprocs_running 1\nprocs_blocked 0\n"
    )  # fmt: skip


def interrupts(cpus: int) -> bytes:
    """/proc/interrupts: no device has asked for attention."""
    return b"    " + b"".join(b"       CPU%-8d" % number for number in range(cpus)) + b"\n"


def mountinfo(root: int) -> bytes:
    """/proc/PID/mountinfo.

    Args:
        root: the device of the directory /.
    """
    numbers = (
        b"%d:%d" % (os.major(dev), os.minor(dev))
        for dev in (
            *(root, devices.PROC, devices.SYS, devices.CGROUP, devices.DEV),
            devices.SHARED_MEMORY,
        )
    )
    return (
        b"1 0 %s / / rw,relatime - overlay overlay rw\n"
        b"2 1 %s / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n"
        b"3 1 %s / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro\n"
        b"5 3 %s / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 ro\n"
        b"4 1 %s / /dev rw,nosuid,relatime - tmpfs dev rw\n"
        b"6 4 %s / /dev/shm rw,nosuid,nodev,relatime - tmpfs tmpfs rw\n"
    ) % tuple(numbers)


def _map_line(entry: MapEntry) -> bytes:
    line = b"%08x-%08x %s %08x %s %d " % (
        entry.start,
        entry.end,
        entry.flags.encode(),
        entry.offset,
        devices.show(entry.dev),
        entry.ino,
    )
    if not entry.path:
        return line + b"\n"
    return line.ljust(73) + entry.path.replace(b"\n", b"\\012") + b"\n"


def maps(process: ProcProcess) -> bytes:
    """/proc/PID/maps."""
    return b"".join(map(_map_line, process.maps()))


def smaps(process: ProcProcess) -> bytes:
    """/proc/PID/smaps, with what is resident shared with relatives or private."""
    parts = []
    shared = process.shared
    for entry in process.maps():
        size, there = (entry.end - entry.start) >> 10, entry.resident >> 10
        parts.append(_map_line(entry))
        parts.extend(
            b"%-16s%8d kB\n" % (name + b":", value)
            for name, value in (
                (b"Size", size),
                (b"KernelPageSize", 4),
                (b"MMUPageSize", 4),
                (b"Rss", there),
                (b"Pss", there >> shared),
                (b"Shared_Clean", 0),
                (b"Shared_Dirty", there if shared else 0),
                (b"Private_Clean", 0),
                (b"Private_Dirty", 0 if shared else there),
                (b"Referenced", there),
                (b"Anonymous", 0 if entry.path.startswith(b"/") else there),
                (b"Swap", 0),
                (b"Locked", 0),
            )
        )
    return b"".join(parts)


def _sizes(process: ProcProcess, numbers: ProcStatus) -> dict[str, int]:
    """Bytes of mappings by kind (vm_stat_account), and of what is resident; of files that alone.

    "text" is the program's code, "library" all other code.
    """
    sizes = dict.fromkeys(("all", "data", "stack", "code", "resident", "file"), 0)
    for entry in process.maps():
        size = entry.end - entry.start
        if entry.path == VSYSCALLS:
            continue
        sizes["all"] += size
        sizes["resident"] += entry.resident
        if entry.grows:
            sizes["stack"] += size
        elif "w" in entry.flags:
            sizes["data"] += size if "p" in entry.flags else 0
        elif "x" in entry.flags:
            sizes["code"] += size
        if entry.path.startswith(b"/"):
            sizes["file"] += entry.resident
    text = page_up(numbers.end_code) - (numbers.start_code & -_PAGE)
    sizes["text"] = min(text, sizes["code"])
    sizes["library"] = sizes["code"] - sizes["text"]
    return sizes


def statm(process: ProcProcess) -> bytes:
    """/proc/PID/statm."""
    sizes = _sizes(process, process.status())
    sizes["data"] += sizes["stack"]
    pages = [sizes[kind] // _PAGE for kind in ("all", "resident", "file", "text", "data")]
    return b"%d %d %d %d 0 %d 0\n" % tuple(pages)


def stat_line(process: ProcProcess, tid: int) -> bytes:
    """/proc/PID/stat: 52 fields."""
    numbers = process.status()
    sizes = _sizes(process, numbers)
    fields: list[object] = [0] * 52
    fields[0], fields[1], fields[2] = tid, f"({process.comm.decode('latin-1')})", numbers.state
    fields[3], fields[4], fields[5] = numbers.ppid, numbers.pgrp, numbers.session
    terminal = process.terminal
    fields[6], fields[7] = (terminal.device, terminal.group) if terminal else (0, -1)
    fields[8] = 0x400000
    fields[13], fields[15] = numbers.cpu_ticks, numbers.children_ticks
    fields[17], fields[18], fields[19] = 20 + numbers.nice, numbers.nice, numbers.threads
    fields[21], fields[22], fields[23] = (
        numbers.start_time,
        sizes["all"],
        sizes["resident"] // _PAGE,
    )
    fields[24] = 2**64 - 1
    fields[25], fields[26], fields[27] = (
        numbers.start_code,
        numbers.end_code,
        numbers.start_stack,
    )
    fields[30], fields[31], fields[32], fields[33] = (
        mask & 0x7FFFFFFF
        for mask in (numbers.pending, numbers.blocked, numbers.ignored, numbers.caught)
    )
    fields[37], fields[40] = 17, numbers.policy
    return " ".join(map(str, fields)).encode("latin-1") + b"\n"


def status(process: ProcProcess, tid: int) -> bytes:
    """/proc/PID/status."""
    numbers = process.status()
    sizes = {kind: size >> 10 for kind, size in _sizes(process, numbers).items()}
    state = {
        "R": "R (running)",
        "S": "S (sleeping)",
        "Z": "Z (zombie)",
        "T": "T (stopped)",
        "t": "t (tracing stop)",
    }
    uid, gid = process.identity
    able = f"{numbers.capabilities:016x}"
    lines = [
        ("Name", process.comm.decode("latin-1")),
        ("Umask", f"{numbers.umask:04o}"),
        ("State", state.get(numbers.state, numbers.state)),
        ("Tgid", process.pid),
        ("Ngid", 0),
        ("Pid", tid),
        ("PPid", numbers.ppid),
        ("TracerPid", numbers.tracer),
        ("Uid", f"{uid}\t{uid}\t{uid}\t{uid}"),
        ("Gid", f"{gid}\t{gid}\t{gid}\t{gid}"),
        ("FDSize", max(64, len(process.files))),
        ("Groups", f"{gid} "),
        ("VmPeak", f"{max(sizes['all'], numbers.most >> 10):8d} kB"),
        ("VmSize", f"{sizes['all']:8d} kB"),
        ("VmLck", "       0 kB"),
        ("VmPin", "       0 kB"),
        ("VmHWM", f"{numbers.peak >> 10:8d} kB"),
        ("VmRSS", f"{sizes['resident']:8d} kB"),
        ("RssAnon", f"{sizes['resident'] - sizes['file']:8d} kB"),
        ("RssFile", f"{sizes['file']:8d} kB"),
        ("RssShmem", "       0 kB"),
        ("VmData", f"{sizes['data']:8d} kB"),
        ("VmStk", f"{sizes['stack']:8d} kB"),
        ("VmExe", f"{sizes['text']:8d} kB"),
        ("VmLib", f"{sizes['library']:8d} kB"),
        ("VmPTE", "       0 kB"),
        ("VmSwap", "       0 kB"),
        ("HugetlbPages", "       0 kB"),
        ("Threads", numbers.threads),
        ("SigQ", "0/31433"),
        ("SigPnd", f"{numbers.pending:016x}"),
        ("ShdPnd", f"{0:016x}"),
        ("SigBlk", f"{numbers.blocked:016x}"),
        ("SigIgn", f"{numbers.ignored:016x}"),
        ("SigCgt", f"{numbers.caught:016x}"),
        ("CapInh", f"{0:016x}"),
        ("CapPrm", able),
        ("CapEff", able),
        ("CapBnd", able),
        ("CapAmb", f"{0:016x}"),
        ("NoNewPrivs", numbers.no_new_privileges),
        ("Seccomp", numbers.seccomp),
        ("Seccomp_filters", numbers.seccomp_filters),
        ("Cpus_allowed", mask_text(numbers.affinity, numbers.cpus)),
        ("Cpus_allowed_list", list_text(numbers.affinity)),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    ]
    return "".join(f"{name}:\t{value}\n" for name, value in lines).encode("latin-1")


def limits(process: ProcProcess) -> bytes:
    """/proc/PID/limits."""
    known = {name: (soft, hard) for name, soft, hard in process.limits()}
    infinite = (1 << 64) - 1

    def show(value: int) -> str:
        return "unlimited" if value >= infinite else str(value)

    lines = [f"{'Limit':25} {'Soft Limit':20} {'Hard Limit':20} {'Units':10}"]
    for name, title, unit in _LIMITS:
        soft, hard = known.get(name, (infinite, infinite))
        lines.append(f"{title:25} {show(soft):20} {show(hard):20} {unit:10}")
    return ("\n".join(lines) + "\n").encode()
