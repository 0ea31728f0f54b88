"""Fresh definitions for `kprobe_events`: good ones, bad ones, and all between, drawn at random."""

from collections.abc import Mapping, Sequence
from random import Random

from engine.session.kernel.opened import OpenedKernel

REGISTERS = (
    *("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip", "flags", "cs", "ss", "orig_ax"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
    *("rax", "eax", "r16", "", "x0", "di ", "DI"),
)
TYPES = (
    *("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32", "x64"),
    *("string", "ustring", "symbol", "symstr", "char", "b4@2/32", "b1@7/8", "b3@30/64"),
    *("u8[4]", "string[3]", "ustring[2]", "char[9]", "x64[64]", "u8[65]", "u8[0]", "symstr[2]"),
    *("%pd", "%pD", "u128", "", "u8[", "u8]", "u8[x]", "b0@0/32", "b9@60/64", "b4@2/33", "int"),
    *("u8[4][2]", "String", "b4", "b@/", "string[65]", "u64[-1]"),
)
KNOWN = (
    ("vfs_read", ("file", "buf", "count", "pos")),
    ("vfs_write", ("file", "buf", "count", "pos")),
    ("vfs_open", ("path", "file")),
    ("do_sys_openat2", ("dfd", "filename", "how")),
    ("kfree", ("object", "objp")),
    ("wake_up_process", ("p",)),
    ("tcp_sendmsg", ("sk", "msg", "size")),
    ("ip_rcv", ("skb", "dev", "pt", "orig_dev")),
)
FIELDS = (
    "f_pos",
    "f_path.dentry",
    "f_inode->i_ino",
    "nosuch",
    "comm",
    "",
    "f_path",
    "d_name.name",
)


class FreshDefinitions:
    """Definitions drawn for one kernel."""

    def __init__(
        self,
        rng: Random,
        functions: Sequence[tuple[str, int, int]],
        others: Sequence[tuple[str, int]],
        starts: Mapping[str, Sequence[int]],
    ) -> None:
        """Draw them.

        Args:
            rng: source of all choices.
            functions: (name, address, size) of functions, blacklisted ones among them.
            others: (name, address) of other symbols.
            starts: offsets of instructions of some functions.
        """
        self._rng = rng
        self._functions = functions
        self._others = others
        self._starts = starts
        self._number = 0
        self._wild = False
        """Wherever something wrong can stand in the line, it may."""

    def draw(self) -> str:
        """One more."""
        rng = self._rng
        self._number += 1
        self._wild = rng.random() < 0.4
        place, names = self._place()
        line = f"{self._head()} {place}"
        if self._wild and rng.random() < 0.08:
            return self._broken(line)
        return " ".join([line, *self._arguments(names)])

    def _broken(self, line: str) -> str:
        """Return a line that is hardly a definition."""
        rng = self._rng
        return rng.choice(
            (
                *(
                    line.partition(" ")[0],
                    "",
                    "#" + line,
                    " " + line,
                    line + " # " + line,
                    "p:",
                    "r",
                ),
                *("-:kprobes/nosuch", "-:nosuch", "-", "!p vfs_read", line + " " * 9, "\t" + line),
                *(line + " a", line + " =", line + " a=", line + ' a="x', line + " a=%ax =%bx"),
                line + "".join(f" a{number}=%ax" for number in range(rng.choice((127, 128, 129)))),
                *(line.replace(" ", "  "), line.upper(), "x:" + line, line + "\r"),
            )
        )

    def _head(self) -> str:
        rng, number = self._rng, self._number
        good = (
            *("p", "r", f"p:e{number}", f"r:e{number}", f"p:grp/e{number}", f"r:grp/e{number}"),
            *(f"p:grp.e{number}", f"r{rng.randrange(1, 60)}:grp/e{number}", f"p:g_/E_{number}"),
        )
        bad = (
            *(
                "r0",
                "r4096:a/b",
                "r4097:a/b",
                "r99999999999",
                "rx",
                "p3",
                "p3:a/b",
                "P",
                "pp",
                "q",
            ),
            *(
                "p:1a/b",
                "p:a/1b",
                "p:a-b/c",
                "p:a/b-c",
                "p:/x",
                "p:a/",
                "p:a/b/c",
                "p:a.b.c",
                "p:,",
            ),
            *(f"p:{'n' * rng.choice((62, 63, 64, 65))}", f"p:{'g' * rng.choice((63, 64, 65))}/x"),
            *("r-1", "r:a/b:c", "p:a b", "p:*", "p:sched/sched_switch", "r 5", "p:kprobes/x"),
        )
        return rng.choice(bad if self._wild and rng.random() < 0.3 else good)

    def _place(self) -> tuple[str, Sequence[str]]:
        """A place, and names of arguments of the function there."""
        rng = self._rng
        kind = rng.random() if self._wild else rng.random() * 0.8
        if kind < 0.12:
            name, names = rng.choice(KNOWN)
            return name + rng.choice(("", "", "+0", "+4", "+5", "%return", "+0%return")), names
        name, start, size = rng.choice(self._functions)
        if kind < 0.40:
            return name, ()
        if kind < 0.62:
            return self._inside(), ()
        if kind < 0.72:
            return f"{name}+{rng.choice((hex, str))(rng.randrange(max(size, 1)))}", ()
        if kind < 0.78:
            return f"{start + rng.choice((0, 0, 1, 4, 5, max(size - 1, 0))):#x}", ()
        if kind < 0.82:
            other, address = rng.choice(self._others)
            return rng.choice((other, other + "+8", f"{address:#x}")), ()
        if kind < 0.87:
            return name + rng.choice(("%return", "+0%return", "+4%return", "%retur", "%")), ()
        return (
            rng.choice(
                (
                    *("nosuch", name + "x", name + "+", name + "-1", name + "+-1", name + "+x"),
                    *(f"{name}+{size + 16}", f"{name}+0x7fffffff", f"{name}+99999999999999999999"),
                    *("0x0", "0", "1000", "-5", "0xffffffffffffffff", "0xfffffffffffffffff"),
                    *("nomod:" + name, ":" + name, name + ":", "kernel:" + name, name + "+0+1"),
                    *("_text", "_stext", "_etext", "_end", "jiffies", "%ax", "$stack", "@1", "*"),
                    *("+5", "vfs_*", name + "+08", name + "+0x", name + "+0b1", name + " +4"),
                )
            ),
            (),
        )

    def _inside(self) -> str:
        """The start of an instruction."""
        rng = self._rng
        name = rng.choice(list(self._starts))
        return f"{name}+{rng.choice(self._starts[name])}"

    def _arguments(self, names: Sequence[str]) -> list[str]:
        rng = self._rng
        return [self._argument(names) for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 3)))]

    def _argument(self, names: Sequence[str]) -> str:
        rng = self._rng
        text = self._fetched(names, rng.randrange(4))
        if rng.random() < 0.5:
            text += ":" + rng.choice(TYPES if self._wild else TYPES[:16])
        if rng.random() < 0.7:
            good = ("a", "b", "c", "val", "_x", "A9")
            bad = (
                "9a",
                "a-b",
                "",
                "common_pid",
                "__probe_ip",
                "a.b",
                "n" * 40,
                "a b",
                "__probe_func",
            )
            text = f"{rng.choice(bad if self._wild and rng.random() < 0.15 else good)}={text}"
        return text

    def _fetched(self, names: Sequence[str], depth: int) -> str:
        rng = self._rng
        kind = rng.random()
        if depth and kind < 0.3:
            offset = rng.choice(
                ("+0", "-8", "+16", "+0x10", "+u0", "+u8", "-u4", "+", "+x", "0", "-")
            )
            if not self._wild or rng.random() < 0.7:
                offset = rng.choice(("+0", "-8", "+16", "+0x10", "+u0"))
            close = rng.choice(("", "))", ") ")) if self._wild and rng.random() < 0.1 else ")"
            return f"{offset}({self._fetched(names, depth - 1)}{close}"
        if kind < 0.6:
            known = not self._wild or rng.random() < 0.8
            return "%" + rng.choice(REGISTERS[:21] if known else REGISTERS)
        if kind < 0.7 and names:
            name = rng.choice((*names, "nosuch"))
            return name + rng.choice(("", "", f"->{rng.choice(FIELDS)}"))
        symbol, address = rng.choice(self._others)
        if not self._wild:
            good = ("$stack", "$stack3", "$comm", "$arg1", "$arg2", "$retval", f"@{address:#x}")
            return rng.choice((*good, f"@{symbol}", f"@{symbol}+8", "\\5", '\\"text"', "$stack0"))
        return rng.choice(
            (
                *(
                    "$stack",
                    "$stack0",
                    "$stack7",
                    "$stack1024",
                    "$stack999999",
                    "$stackx",
                    "$comm",
                ),
                *("$COMM", "$retval", "$retval", "$arg1", "$arg2", "$arg6", "$arg7", "$arg0"),
                *("$arg*", "$argx", "$nosuch", "$", f"@{symbol}", f"@{symbol}+8", f"@{symbol}-4"),
                *(f"@{address:#x}", "@nosuch", "@", "@+5", "@12x", "\\1", "\\-5", "\\0x20", "\\x"),
                *('\\"text"', '\\"te', "\\", "12", "x", "&x", "+0", "$retval->x", f"@{symbol}+x"),
            )
        )


def fresh_definitions(image: OpenedKernel, rng: Random, count: int) -> list[str]:
    """So many definitions for an opened kernel.

    Args:
        image: an `OpenedKernel`.
        rng: source of all choices.
        count: the number of definitions.
    """
    names = image.image.names
    low, high = image.tables.text[0]
    ends = [*names.addresses[1:], names.addresses[-1]]
    rows = list(zip(names.names, names.addresses, ends, strict=True))
    inside = [(name, at, end - at) for name, at, end in rows if low <= at < high]
    others = [(name, at) for name, at, _ in rows if not low <= at < high]
    some = rng.sample(inside, min(len(inside), 4000))
    blacklisted = [row for row in some if not image.places.event(row[1]).ok]
    functions = [rng.choice(inside) for _ in range(count)]
    functions += [rng.choice(blacklisted) for _ in range(count // 5)]
    starts: dict[str, list[int]] = {}
    for name, at, size in rng.sample(functions, min(len(functions), count // 2)):
        function = image.places.function(at)
        if 4 < size < 4096 and function is not None and function.start == at:
            starts[name] = [each - at for each, _ in image.places.instructions(function)]
    drawn = FreshDefinitions(rng, functions, [rng.choice(others) for _ in range(count)], starts)
    return [drawn.draw() for _ in range(count)]
