"""Files of an editor that have a program's name, and are not the program's."""

from pathlib import Path

import pytest
from compiled import build
from dapkit import FrontEnd, Message, front_end

TEXT = "int main(void)\n{\n    return 7;\n}\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name in ("copied", "other", "gone"):
        (folder / name).mkdir()
    (folder / "copied" / "named.c").write_text(TEXT)
    (folder / "other" / "named.c").write_text(f"/* Another one. */\n{TEXT}")
    return build(folder, "named", TEXT, "-g", "-static")


def placed(editor: FrontEnd, path: Path) -> Message:
    found = editor.ask(
        "setBreakpoints", source={"path": str(path)}, breakpoints=[{"line": 3}]
    )  # fmt: skip
    (one,) = found["breakpoints"]
    assert isinstance(one, dict)
    return one


def test_a_file_of_the_same_name_is_another_one(program: Path) -> None:
    folder, own = program.parent, str(program.with_suffix(".c"))
    with front_end() as editor:
        editor.launch(program, stopOnEntry=True)
        editor.go()
        for name in ("other", "gone"):
            assert not placed(editor, folder / name / "named.c")["verified"]
        copied = folder / "copied" / "named.c"
        assert placed(editor, copied)["source"]["path"] == str(copied)
        # Once the program's own file is open, it is shown.
        assert placed(editor, Path(own))["source"]["path"] == own
        assert editor.top(editor.run())["source"]["path"] == own


def test_a_file_of_the_same_name_stands_for_one_that_is_not_here(program: Path) -> None:
    own = program.with_suffix(".c")
    own.rename(own.with_suffix(".moved"))
    other = program.parent / "other" / "named.c"
    with front_end() as editor:
        editor.launch(program)
        assert placed(editor, other)["source"]["path"] == str(other)
    own.with_suffix(".moved").rename(own)
