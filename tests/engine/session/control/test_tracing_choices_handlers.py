"""Files of handlers that a front end loads, changes and takes out."""

from pathlib import Path

from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

FILE = """
def entered(instance, regs):
    instance.data = regs.argument(0)

def returned(instance, regs):
    print("factorial", instance.data, "is", regs.retval)

def exit():
    print("bye")

probes = [Kretprobe(symbol_name="factorial", entry_handler=entered, handler=returned)]
"""
WRONG = """
def wrong(probe, regs):
    nothing
probes = [Kprobe(symbol_name='main', pre_handler=wrong)]
"""


def printed(guest: Held) -> list[str]:
    """What handlers have printed."""
    lines = [line for event in guest.all(ev.Remark) for line in event.lines]
    return [line for line in lines if line.startswith(("factorial", "bye", "again"))]


def refusal(guest: Held, command: cmd.Command) -> str:
    """Carry a command out that cannot be: why not."""
    failure = guest.fail(command)
    assert failure is not None
    return failure.text


def test_loaded_changed_and_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "handlers.py"
    file.write_text(FILE)
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/fib fibonacci"), cmd.LoadHandlers(str(file)))
        assert guest.all(ev.Done)[-1].text == f"1 probe of {file}"
        guest.do(cmd.Continue())
        assert printed(guest) == ["factorial 20 is 2432902008176640000", "bye"]
        file.write_text(FILE.replace('"factorial"', '"again"', 1))
        guest.do(cmd.Restart(), cmd.Continue())
        assert printed(guest)[2:] == ["again 20 is 2432902008176640000", "bye"]
        guest.do(cmd.Restart(), cmd.LoadHandlers())
        assert printed(guest)[4:] == ["bye"], "the old one has gone"
        guest.do(cmd.LoadHandlers(on=False), cmd.Continue())
        assert printed(guest)[4:] == ["bye", "bye"]
        assert [probe.row.id for probe in guest.view.probes] == [1], "the others stay"
        assert guest.events


def test_what_is_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "handlers.py"
    with held(sample("x86_64", "recursion")) as guest:
        for text, said in (
            ("x = 1", "it defines no list 'probes'"),
            ("x = 1\nx / 0", "line 2: ZeroDivisionError"),
            ("probes = [Kprobe(symbol_name='nosuch')]", "nosuch"),
        ):
            file.write_text(text)
            assert said in refusal(guest, cmd.LoadHandlers(str(file)))
        assert "No such file" in refusal(guest, cmd.LoadHandlers(str(tmp_path / "none")))
        assert "a FILE of handlers is missing" in refusal(guest, cmd.LoadHandlers())
        file.write_text(WRONG)
        guest.do(cmd.LoadHandlers(str(file)))
        assert "line 3: NameError" in refusal(guest, cmd.Continue())
        guest.do(cmd.LoadHandlers(on=False), cmd.Continue())
        assert guest.view.exit_code == 0
