"""A handlers file from its loading to its end, and what is said of its errors."""

from pathlib import Path

import pytest
from guestrun import run
from sessionkit import SAMPLES, Guest, loaded

from engine.errors import CommandError, ProbeError
from engine.image import ElfImage, SymbolTable
from engine.session.tracing.handlers import blamed, load_handlers

RECURSION = SAMPLES / "x86_64" / "recursion"
CALLS = 987
SERVED = 8
"""Calls of fibonacci(15) that two instances are enough for."""


def load(guest: Guest, folder: Path, source: str) -> dict[str, object]:
    path = folder / "handlers.py"
    path.write_text(source)
    return load_handlers(str(path), guest.session)


def test_a_life(tmp_path: Path) -> None:
    """init, pre- and post-handlers in turn, exit."""
    source = (
        "log = []\n"
        "def pre(probe, regs):\n    log.append(('pre', regs.argument(0)))\n"
        "def post(probe, regs, flags):\n    log.append(('post', regs.ip - probe.addr, flags))\n"
        "probe = Kprobe(symbol_name='factorial', pre_handler=pre, post_handler=post)\n"
        "probes = [probe]\n"
        "def init():\n    log.append(('init', probe.addr, guest.config.args))\n"
        "def exit():\n    log.append(('exit', probe.hits))\n"
    )
    with loaded(RECURSION) as guest:
        names = load(guest, tmp_path, source)
        place = guest.session.probes().verdicts.places.resolve("factorial")[0]
        assert names["log"] == [("init", place.link, ())]
        assert guest.run().exit_code == 0
        length = guest.session.arch.probes.length(place.image.read_vaddr(place.link, 15))
        assert names["log"] == [
            ("init", place.link, ()),
            ("pre", 20),
            ("post", length, 0),
            ("exit", 1),
        ]


def test_places_by_symbol_address_and_file(tmp_path: Path) -> None:
    with loaded(RECURSION) as guest:
        place = guest.session.probes().verdicts.places.resolve("fibonacci")[0]
        source = (
            "seen = []\n"
            "def pre(probe, regs):\n    seen.append(str(probe))\n"
            "def one(probe, regs):\n    seen.append('u')\n    return Uprobe.REMOVE\n"
            f"probes = [Kprobe(addr={place.link - 3:#x}, offset=3, pre_handler=pre, name='a'),\n"
            "  Kprobe(symbol_name='fibonacci', offset=2, pre_handler=pre),\n"
            f"  Uprobe({str(RECURSION)!r}, {place.file_offset}, handler=one)]\n"
        )
        names = load(guest, tmp_path, source)
        guest.run()
        seen = names["seen"]
        assert isinstance(seen, list)
        assert seen[:4] == ["u", "a", "fibonacci+0x2", "a"]  # newest first; u took itself out
        assert (seen.count("a"), seen.count("fibonacci+0x2"), seen.count("u")) == (CALLS, CALLS, 1)


def test_a_handler_changes_the_program(tmp_path: Path) -> None:
    """Registers, memory, and a whole function left out."""
    source = (
        "def skip(probe, regs):\n"
        "    regs.retval = 42\n"
        "    regs.ip = int.from_bytes(regs.read(regs.sp, 8), 'little')\n"
        "    regs['sp'] = regs.sp + 8\n"
        "    return 1\n"
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=skip)]\n"
    )
    with loaded(RECURSION) as guest:
        load(guest, tmp_path, source)
        guest.run()
        assert guest.out.splitlines()[1] == "fibonacci(15) = 42"


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("probes = [\n", CommandError, "SyntaxError"),
        ("x = 1\n\n1 / 0\n", CommandError, "line 3: ZeroDivisionError: division by zero"),
        ("probes = []\n", CommandError, "it defines no list 'probes'"),
        ("probes = 7\n", CommandError, "it defines no list 'probes'"),
        ("probes = ['x']\n", CommandError, "'x' in 'probes' is no probe"),
        ("probes = [Kprobe()]\n", ProbeError, "needs a symbol_name or an addr"),
        ("probes = [Kprobe(addr=0)]\n", ProbeError, "needs a symbol_name or an addr, and not"),
        ("probes = [Kprobe(symbol_name='main', addr=5)]\n", ProbeError, "and not both (EINVAL)"),
        ("probes = [Kretprobe(symbol_name='main', addr=5)]\n", ProbeError, "and not both"),
        ("probes = [Kprobe(symbol_name='main')] * 2\n", ProbeError, "twice (EINVAL)"),
        ("probes = [Kprobe(symbol_name='main', offset=-1)]\n", ProbeError, "of 32 bits (EINVAL)"),
        ("probes = [Kprobe(addr=9, offset=1 << 32)]\n", ProbeError, "of 32 bits (EINVAL)"),
        ("probes = [Kprobe(symbol_name='main', offset='4')]\n", CommandError, "'4' is no int"),
        ("probes = [Kprobe(symbol_name='main', flags=1)]\n", CommandError, "1 is no ProbeFlags"),
        ("probes = [Kprobe(symbol_name='main', mode='x')]\n", CommandError, "'x' is no Mode"),
        ("probes = [Kretprobe(symbol_name='main', data_size=-1)]\n", ProbeError, "E2BIG"),
        ("probes = [Kretprobe(symbol_name='main', data_size='x')]\n", CommandError, "no int"),
        ("probes = [Kretprobe(symbol_name='main', maxactive=1.5)]\n", CommandError, "no int"),
        # The place comes first, in register_kretprobe.
        (
            "probes = [Kretprobe(symbol_name='fibonacci', offset=2, data_size=9999)]\n",
            ProbeError,
            "EINVAL",
        ),
        ("probes = [Kprobe(symbol_name='nope')]\n", ProbeError, "no symbol 'nope'"),
        ("probes = [Kprobe(addr=0x10)]\n", ProbeError, "outside all segments"),
        ("probes = [Uprobe('/no/file', 0)]\n", ProbeError, "no readable file /no/file"),
        ("probes = [Kprobe(symbol_name='fibonacci', offset=1)]\n", ProbeError, "EILSEQ"),
        (
            "probes = [Kprobe(symbol_name='main')]\ndef init():\n    return {}[1]\n",
            CommandError,
            "line 3: KeyError: 1",
        ),
        ("x = 1\nraise KeyboardInterrupt\n", CommandError, "line 2: KeyboardInterrupt"),
        ("probes = [Kprobe(symbol_name=5)]\n", CommandError, "symbol_name of Kprobe: 5 is no str"),
        ("probes = [Kprobe(addr='x')]\n", CommandError, "addr of Kprobe: 'x' is no int"),
        (
            "probes = [Kprobe(symbol_name='main')]\ndef exit(code): pass\n",
            CommandError,
            "exit: it is called with (): missing a required argument: 'code'",
        ),
    ],
)
def test_errors_of_loading(tmp_path: Path, source: str, error: type[Exception], text: str) -> None:
    with loaded(RECURSION) as guest, pytest.raises(error) as caught:
        load(guest, tmp_path, source)
    assert text in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with loaded(RECURSION) as guest, pytest.raises(CommandError, match="No such file"):
        load_handlers(str(tmp_path / "none.py"), guest.session)


def test_an_error_at_a_hit_ends_the_run_and_is_the_files(tmp_path: Path) -> None:
    source = (
        "def helper(regs):\n    raise ValueError('boom')\n"
        "def pre(probe, regs):\n    helper(regs)\n"
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=pre)]\n"
    )
    with loaded(RECURSION) as guest:
        load(guest, tmp_path, source)
        path = str(tmp_path / "handlers.py")
        with pytest.raises(CommandError, match=r"line 2: ValueError: boom"), blamed(path):
            guest.run()
        assert guest.out.startswith("factorial(20)")
        assert not guest.session.probes().manager.busy()


@pytest.mark.parametrize(
    "probe",
    [
        "Kprobe(symbol_name='fibonacci', pre_handler=ends)",
        "Kretprobe(symbol_name='fibonacci', handler=ends)",
        "Kretprobe(symbol_name='fibonacci', entry_handler=ends)",
    ],
)
def test_sys_exit_in_a_handler_is_no_exit_of_the_guest(tmp_path: Path, probe: str) -> None:
    source = f"import sys\ndef ends(probe, regs):\n    sys.exit(3)\nprobes = [{probe}]\n"
    with loaded(RECURSION) as guest:
        load(guest, tmp_path, source)
        path = str(tmp_path / "handlers.py")
        with pytest.raises(CommandError, match=r"line 3: SystemExit: 3"), blamed(path):
            guest.run()


def test_sys_exit_while_the_file_loads(tmp_path: Path) -> None:
    source = "import sys\nsys.exit(0)\n"
    with loaded(RECURSION) as guest, pytest.raises(CommandError, match="line 2: SystemExit: 0"):
        load(guest, tmp_path, source)


@pytest.mark.parametrize("name", ["pre_handler", "post_handler"])
def test_a_handler_that_could_not_be_called_is_refused(tmp_path: Path, name: str) -> None:
    source = f"probes = [Kprobe(symbol_name='fibonacci', {name}=lambda one: 0)]\n"
    with (
        loaded(RECURSION) as guest,
        pytest.raises(
            CommandError, match=rf"{name} of .*: it is called with \(probe, regs.*too many"
        ),
    ):
        load(guest, tmp_path, source)


def test_errors_of_others_pass() -> None:
    with pytest.raises(KeyError), blamed("handlers.py"):
        raise KeyError("engine")
    with pytest.raises(ProbeError), blamed("handlers.py"):
        raise ProbeError("engine")


def test_hits_and_misses_are_told_as_those_of_events_are(tmp_path: Path) -> None:
    """A return probe of a file finds no instance as one of a definition does, and says so."""
    image = ElfImage.open(RECURSION)
    main = SymbolTable(image).find("main")
    assert main is not None
    offset = image.file_offset(main.address)
    file = tmp_path / "handlers.py"
    file.write_text(
        "def back(instance, regs): pass\n"
        "probes = [Kretprobe(symbol_name='fibonacci', maxactive=2, handler=back),\n"
        "          Kprobe(symbol_name='main', pre_handler=lambda probe, regs: None),\n"
        f"          Uprobe({str(RECURSION)!r}, {offset:#x}, name='u')]\n"
    )
    done = run("trace", "--handlers", str(file), "--profile", str(RECURSION), cwd=tmp_path)
    profile = [line.split() for line in done.err.partition("# profile\n")[2].splitlines()]
    missed = str(CALLS - SERVED)
    assert profile[:3] == [
        ["fibonacci+0x0", str(SERVED), missed],
        ["main+0x0", "1", "0"],
        [str(RECURSION), "u", "1"],
    ]
    assert "kprobe-tui: missed hits:" in done.err
    assert f"kprobe-tui:   fibonacci+0x0: {missed} of {CALLS} hits missed" in done.err
    events = run("trace", "-e", "r2:x fibonacci", "--profile", str(RECURSION), cwd=tmp_path)
    assert ["x", str(SERVED), missed] in [line.split() for line in events.err.splitlines()]


def test_probes_that_handlers_register_are_told_too(tmp_path: Path) -> None:
    """At the end, those that were taken out again among them."""
    file = tmp_path / "handlers.py"
    file.write_text(
        "late = []\n"
        "manager = guest.probes().manager\n"
        "def fib(make, name):\n"
        "    probe = make(name=name)\n"
        "    probe.addr = guest.probes().verdicts.places.resolve('fibonacci')[0].link\n"
        "    late.append(probe)\n"
        "    manager.register(probe)\n"
        "def few(name):\n"
        "    return Kretprobe(maxactive=2, handler=lambda instance, regs: 0, name=name)\n"
        "def place(probe, regs):\n"
        "    fib(few, 'stays')\n"
        "    fib(few, 'goes')\n"
        "    fib(Kprobe, 'plain')\n"
        "    fib(Kprobe, 'gone')\n"
        "def drop(probe, regs):\n"
        "    if probe.hits == 1:\n"
        "        manager.unregister_all([late[1], late[3]])\n"
        "probes = [Kprobe(symbol_name='main', pre_handler=place),\n"
        "          Kprobe(symbol_name='ackermann', pre_handler=drop)]\n"
    )
    done = run("trace", "--handlers", str(file), "--profile", str(RECURSION), cwd=tmp_path)
    profile = [line.split() for line in done.err.partition("# profile\n")[2].splitlines()]
    served, missed = str(SERVED), str(CALLS - SERVED)
    assert profile[:5] == [
        ["main+0x0", "1", "0"],
        ["ackermann+0x0", "20", "0"],
        ["stays", served, missed],
        ["goes", served, missed],
        ["plain", str(CALLS), "0"],
    ]
    assert "gone" not in done.err
    for name in ("stays", "goes"):
        assert f"kprobe-tui:   {name}: {missed} of {CALLS} hits missed" in done.err


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise KeyboardInterrupt", "line 2: KeyboardInterrupt"),
        ("raise GeneratorExit", "line 2: GeneratorExit"),
        ("guest.close()", "a guest cannot be closed while it runs"),
    ],
)
def test_what_a_handler_cannot_do(tmp_path: Path, body: str, told: str) -> None:
    """It passed for a Ctrl-C, printed a traceback, and took the tool with it."""
    file = tmp_path / "handlers.py"
    file.write_text(
        f"def before(probe, regs):\n    {body}\n"
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=before)]\n"
    )
    done = run(
        "trace", "-e", "p:g/f factorial", "--handlers", str(file), str(RECURSION), cwd=tmp_path
    )
    assert done.code == 2
    assert told in done.err
    assert done.err.count(" f: (factorial+0x0/") == 1


def test_no_number_of_instances_is_the_default_one(tmp_path: Path) -> None:
    """As in Linux (register_kretprobe: maxactive <= 0)."""
    with loaded(RECURSION) as guest:
        names = load(
            guest,
            tmp_path,
            "seen = []\n"
            "def back(instance, regs): seen.append(1)\n"
            "probes = [Kretprobe(symbol_name='fibonacci', maxactive=-1, handler=back)]\n",
        )
        guest.run()
        assert names["seen"] == [1] * CALLS
