"""Goroutines as an editor has them: rows of its list of threads, with stacks and variables."""

import pytest
from dapkit import RefusedError, front_end
from goroutinekit import go_program

WAITING = {
    "main.receives": "chan receive",
    "main.sends": "chan send",
    "main.selects": "select",
    "time.Sleep": "sleep",
    "sync.runtime_Semacquire": "semacquire",
    "main.nothing": "chan receive (nil chan)",
    "sync.runtime_notifyListWait": "sync.Cond.Wait",
    "main.locked": "chan receive, locked to thread",
}
"""Where goroutines of states.go are when `place` is called, by delve, and what they wait for."""


@pytest.mark.slow
def test_goroutines_that_wait_are_threads_of_an_editor() -> None:
    with front_end() as editor:
        editor.launch(go_program("states", "-gcflags=-N -l"))
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "main.place"}])
        stop = editor.go()
        names = {one["name"]: one["id"] for one in editor.ask("threads")["threads"]}
        here = next(name for name, number in names.items() if number == stop["threadId"])
        assert here.endswith("[Go 1] main.place")
        ids = {}
        for function, status in WAITING.items():
            found = [n for n in names if f"] {function} (" in n]
            assert len(found) == 1
            assert found[0].endswith(f" ({status})")
            ids[function] = names[found[0]]

        deep = next(number for name, number in names.items() if "] main.deep (" in name)
        frames = [one["name"] for one in editor.frames(deep)]
        assert frames[0] == "runtime.gopark"
        assert frames.count("main.deep") == 6
        calls = [one for one in editor.frames(deep) if one["name"] == "main.deep"]
        assert [editor.scope(one, "Arguments")["n"]["value"] for one in calls] == list("012345")
        answer = editor.ask("evaluate", expression="n * 2", frameId=calls[3]["id"])
        assert answer["result"] == "6"

        with pytest.raises(RefusedError, match="waits, and no thread runs it"):
            editor.ask("next", threadId=ids["main.sends"])
        with pytest.raises(RefusedError, match="No goroutine 999"):
            editor.ask("stackTrace", threadId=(1 << 32) + 999)
        # Another goroutine was looked at: the thread that stopped is still there, and steps.
        assert editor.frames(stop["threadId"])[0]["name"] == "main.place"
        again = editor.run("next", threadId=stop["threadId"])
        assert editor.top(again)["name"] == "main.place"
        editor.ask("continue", threadId=ids["main.sends"])
        assert editor.event("exited")["body"]["exitCode"] == 0
