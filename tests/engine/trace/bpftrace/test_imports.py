"""Scripts that import others and headers."""

from pathlib import Path

import pytest
from scripttrees import shape

from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.imports import MAX_FILES, with_imports
from engine.trace.bpftrace.parser import parse
from engine.trace.bpftrace.text import ScriptText, WrongScriptError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


def _written(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        path.parent.chmod(0o755)


def _whole(folder: Path, text: str) -> ScriptText:
    return with_imports(ScriptText("main.bt", text), folder)


def _refusal(folder: Path, text: str) -> str:
    with pytest.raises(WrongScriptError) as caught:
        parse(_whole(folder, text))
    assert len(caught.value.remarks) == 1
    return str(caught.value)


def test_scripts_and_headers_are_merged(folder: Path) -> None:
    _written(
        folder,
        one_dot_bt='import "sub/two.bt"; let @m = hash(5); macro twice(x) { x + x } '
        "begin { $a = 1 }",
        sub__two_dot_bt='#define TWO 2\nimport "../one.bt"; import "types.h"; begin { $b = TWO }',
        sub__types_dot_h="#ifndef T\n#define T\nstruct s { int x; };\n#endif\n",
    )
    text = _whole(folder, 'import "one.bt"; import "one.bt"; import "stdlib"; end { $c = TWO }')
    script = parse(text)
    assert [shape(one.body) for one in script.probes] == ["{(= $a 1)}", "{(= $b 2)}", "{(= $c 2)}"]
    assert [one.name for one in script.macros] == ["twice"]
    assert [one.map.name for one in script.maps] == ["m"]
    kind = CDefinitions.of(script.definitions, text).struct("s")
    assert kind is not None
    assert kind.size == 4


def test_a_folder_is_all_of_its_scripts_and_headers(folder: Path) -> None:
    _written(folder, lib__b_dot_bt="end { }", lib__a_dot_bt="begin { }", lib__c_dot_txt="{")
    script = parse(_whole(folder, 'import "lib"; i:s:1 { }'))
    assert [one.points[0].text for one in script.probes] == ["begin", "end", "interval:s:1"]


def test_errors_name_the_file_and_the_place_in_it(folder: Path) -> None:
    _written(
        folder,
        wrong_dot_bt="// a line\nbegin { f( }",
        config_dot_bt="config = { a = 1 }",
        code_dot_h="struct a { int b; };\nint f(void) { return 1; }",
        deep_dot_bt='import "nothing.bt";',
    )
    assert _refusal(folder, 'import "wrong.bt"; end { }') == (
        "wrong.bt:2:12-13: ERROR: syntax: expected expression\nbegin { f( }\n           ~"
    )
    assert _refusal(folder, 'import "config.bt";').startswith(
        "config.bt:1:1-7: ERROR: syntax: invalid `config` within import"
    )
    assert _refusal(folder, 'import "code.h";').startswith(
        "code.h:2:1-4: ERROR: syntax: of a header only types and macros can be read"
    )
    assert _refusal(folder, '\nimport "deep.bt";').startswith(
        "deep.bt:1:1-20: ERROR: error reading import 'nothing.bt': No such file or directory"
    )
    assert _refusal(folder, 'import "wrong.bt"; end { $x = ; }').startswith("wrong.bt:")
    _written(folder, wrong_dot_bt="begin { }")
    assert _refusal(folder, 'import "wrong.bt"; end { $x = ; }').startswith("main.bt:1:31-32:")


def test_what_cannot_be_imported(folder: Path) -> None:
    _written(folder, a_dot_bpf_dot_c="", a_dot_txt="", open_dot_bt="", loop_dot_bt="")
    assert "does not run here: write a macro" in _refusal(folder, 'import "a.bpf.c";')
    assert 'unknown import type: "a.txt"' in _refusal(folder, 'import "a.txt";')
    (folder / "open.bt").chmod(0o666)
    assert "cowardly refusing to import" in _refusal(folder, 'import "open.bt";')
    (folder / "bytes.bt").write_bytes(b"begin \xff")
    (folder / "bytes.bt").chmod(0o644)
    assert "not UTF-8 at byte 6" in _refusal(folder, 'import "bytes.bt";')
    for number in range(MAX_FILES + 1):
        _written(folder, **{f"f{number}_dot_bt": f'import "f{number + 1}.bt";'})
    assert f"more than {MAX_FILES} files" in _refusal(folder, 'import "f0.bt";')
