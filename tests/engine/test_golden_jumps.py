"""Programs of Debian, a probe on every function: jumps record what breakpoints record."""

from pathlib import Path

import archkit
import pytest
from archkit import JUMPING
from sessionkit import loaded
from sysroot import SysrootUnavailable, sysroot

from engine.session.protocol.requests import TraceOptions

SCRIPT = "local t = {} for i = 1, 300 do t[#t + 1] = tostring(i) end print(#table.concat(t))"
MORE = (
    ("n={0} c=$comm s=+0({1}):x64[2]", "n > 32"),
    ("n={0} t=+0(+0({1})):string", 'comm != "seq" || n & 1'),
)
LINES = (("usr/bin/lua5.4", "*", ("-e", SCRIPT)), ("usr/bin/seq", "libc.so.6:*", ("1", "400")))


@pytest.mark.slow
@pytest.mark.sysroot
@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize(("program", "glob", "words"), LINES, ids=[line[0] for line in LINES])
def test_same_events(
    arch: str, program: str, glob: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    try:
        tree = sysroot(arch)
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))
    if not (tree / program).exists():
        pytest.skip(f"no {program} below {tree}")
    found = []
    for technique in ("breakpoint", "auto"):
        path = tmp_path / technique
        with loaded(tree / program, *words, root=str(tree), technique=technique) as guest:
            manager = guest.session.probes().manager
            manager.techniques.after = 2
            tracing = guest.tracing(TraceOptions(output=str(path)))
            tracing.definitions.on_entries(glob)
            for number, (fetch, text) in enumerate(MORE):
                fetched = fetch.format(archkit.argument(arch), "%sp")
                tracing.definitions.define(f"p:m{number} libc.so.6:malloc {fetched}")
                tracing.set_filter("kprobes", f"m{number}", text)
            reports = guest.run(tracing)
            found.append(
                (path.read_bytes(), guest.out, reports.exit_code, guest.session.cpu.blocks())
            )
            many = sum(point.replacement is not None for point in manager.points.values())
    assert found[0] == found[1]
    assert many > 10
