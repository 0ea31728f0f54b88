"""Scripts of bpftrace that a front end attaches: their maps now, in the past, in the next run."""

from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd

COUNTS = "uprobe:{path}:fibonacci {{ @calls = count(); @[arg0] = count(); }}"


def script(path: str, text: str = COUNTS) -> cmd.LoadScript:
    """The command that attaches a script to a guest."""
    return cmd.LoadScript("stdin", text.format(path=path))


def maps(guest: Held) -> list[str]:
    """The lines of a script's maps, its heading left out."""
    guest.do(cmd.Refresh())
    return guest.view.histograms[0].splitlines()[1:]


def refusal(guest: Held, command: cmd.Command) -> str:
    """Carry a command out that cannot be: why not."""
    failure = guest.fail(command)
    assert failure is not None
    return failure.text


def test_maps_are_those_of_the_moment_that_is_looked_at() -> None:
    path = sample("x86_64", "recursion")
    with held(path, history=True) as guest:
        guest.do(script(path), cmd.Define("p:demo/fib fibonacci arg=%di", stops=False))
        guest.do(cmd.Continue())
        end = maps(guest)
        present = guest.view.time
        total = int(end[-1].split()[-1])
        assert end[-1] == f"@calls: {total}"
        events, seen = guest.events, []
        for percent in (0, 30, 60, 90, 100):
            guest.do(cmd.Seek(present * percent // 100))
            found = [line for line in maps(guest) if line.startswith("@calls")]
            seen.append(int(found[0].split()[-1]) if found else 0)
            assert seen[-1] == sum(event.time <= guest.view.time for event in events)
        assert seen == sorted(seen)
        assert seen[0] == 0
        assert 0 < seen[2] < total
        guest.do(cmd.Seek())
        assert maps(guest) == end


def test_a_script_comes_again_in_the_next_run_and_goes() -> None:
    path = sample("x86_64", "recursion")
    with held(path) as guest:
        guest.do(script(path), cmd.Continue())
        first = maps(guest)
        assert guest.view.histograms[0].startswith("# bpftrace: stdin has ended")
        guest.do(cmd.Restart())
        assert maps(guest) == []
        guest.do(cmd.Continue())
        assert maps(guest) == first
        guest.do(cmd.LoadScript())
        assert guest.view.histograms == ()


def test_exit_ends_the_script_and_not_the_guest() -> None:
    path = sample("x86_64", "recursion")
    text = 'uprobe:{path}:fibonacci {{ printf("%d calls\\n", ++@n); if (@n == 3) {{ exit() }} }}'
    with held(path) as guest:
        guest.do(script(path, text), cmd.Continue())
        assert maps(guest) == ["@n: 3"]
        assert "3 calls" in guest.view.histograms[1]
        assert "4 calls" not in guest.view.histograms[1]
        assert guest.view.exit_code == 0


def test_a_recorded_run_is_not_changed_by_a_script() -> None:
    path = sample("x86_64", "recursion")
    scripts = (
        script(path, "interval:ms:1 {{ @ = 1; }}"),
        script(path, 'uprobe:{path}:main {{ signal("INT"); }}'),
    )
    for each in scripts:
        with held(path, history=True) as guest:
            assert "would change a run that is recorded" in refusal(guest, each)
        with held(path) as guest:
            guest.do(each)


def test_a_wrong_script_is_refused_with_its_place() -> None:
    path = sample("x86_64", "recursion")
    with held(path) as guest:
        assert "stdin:1:1-4" in refusal(guest, cmd.LoadScript("stdin", "abc { }"))
        missing = refusal(guest, script(path, "uprobe:{path}:nowhere {{ }}"))
        assert "nowhere" in missing
        assert guest.view.histograms == ()
        half = "uprobe:{path}:fibonacci+1 {{ @a = 1; }} uprobe:{path}:fibonacci {{ @b = 1; }}"
        assert "in the middle of" in refusal(guest, script(path, half))
        points = guest.control.session.probes().manager.points
        assert not points, "no probe of a script that was refused is left"
        guest.do(script(path))
        assert "nope" in refusal(guest, script(path, "uprobe:{path}:main {{ print(nope) }}"))
        guest.do(cmd.Continue())
        assert maps(guest)[-1].startswith("@calls: "), "the last one stays"
