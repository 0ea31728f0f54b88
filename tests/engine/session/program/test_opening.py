"""Finding the program, with symlinks that must stay inside the root; one opening for all."""

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from sysroot import CHECKOUT

from engine.errors import ImageError
from engine.image.elf import disk_state
from engine.linux.fs.stdio import FeedStream
from engine.session import GuestConfig, Session
from engine.session.browse import Browser
from engine.session.program.opening import OpenedFiles, OpenedProgram, locate


def test_absolute_symlinks_stay_inside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_bytes(b"x")
    (root / "bin").symlink_to("/usr/bin")
    (root / "usr/bin/alias").symlink_to("/bin/tool")
    found = locate(str(root / "bin/alias"), str(root))
    assert (found.guest, found.real) == ("/bin/alias", "/usr/bin/tool")
    assert found.host == str(root / "usr/bin/tool")
    assert found.typed == "/bin/alias"  # what the program is called by, there


def test_with_the_hosts_own_root_a_path_stays_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    found = locate("./tool", "/")
    assert (found.typed, found.guest) == ("./tool", str(tmp_path / "tool"))


def test_dots_cannot_leave_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "up").symlink_to("../../../../etc/x")
    (root / "etc/x").write_bytes(b"x")
    assert locate(str(root / "up"), str(root)).host == str(root / "etc/x")


def test_circles_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ImageError, match="symbolic links"):
        locate(str(tmp_path / "a"), str(tmp_path))


def test_outside_a_root_the_host_resolves(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    found = locate(str(tmp_path / "link"), None)
    assert (found.guest, found.real) == (str(tmp_path / "link"), str(tmp_path / "real"))


def test_a_browser_and_a_guest_share_what_was_opened() -> None:
    path = str(CHECKOUT / "samples" / "bin" / "x86_64" / "words")
    browser = Browser(GuestConfig(path, isolated=True))
    opened = browser.opened
    session = Session(opened.config, (FeedStream(ended=True), None, None), opened)
    try:
        assert session.modules.main is not None
        assert session.modules.main.image is opened.image
        here = session.probes().verdicts.main
        assert here.image is browser.verdicts.main.image is opened.image
        assert here.symbols is browser.verdicts.main.symbols
        assert here.lines is browser.verdicts.main.lines
        assert here.variables is not browser.verdicts.main.variables
    finally:
        session.close()


def test_the_loader_of_a_program_is_read_once_under_all_of_its_names() -> None:
    browser = Browser(GuestConfig("/bin/true"))
    session = Session(browser.opened.config, (FeedStream(ended=True), None, None), browser.opened)
    try:
        loader = next(m for m in session.modules.known if m.image is not browser.opened.image)
        file = browser.opened.inspected_tree().open(loader.name)
        assert file is not None
        assert file.image.path == loader.image.path
        assert file.symbols is loader.symbols
        assert file.lines is loader.lines
    finally:
        session.close()


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    words, race = (CHECKOUT / "samples" / "bin" / "x86_64" / name for name in ("words", "race"))
    program = tmp_path / "program"
    shutil.copyfile(words, program)
    os.utime(program, (1, 1))
    files, config = OpenedFiles(), GuestConfig(str(program))
    _until_settled(program)
    first = OpenedProgram.open(config, files)
    again = OpenedProgram.open(replace(config, seed=7), files)
    assert again.image is first.image
    assert again.images is first.images
    assert again.config.seed == 7
    assert OpenedProgram.open(config).image is not first.image
    # With the same size and the same times of its contents it is another file all the same.
    program.write_bytes(program.read_bytes()[::-1][::-1])
    os.utime(program, (1, 1))
    _until_settled(program)
    other = OpenedProgram.open(config, files)
    assert other.image is not first.image
    shutil.copyfile(race, program)
    _until_settled(program)
    assert OpenedProgram.open(config, files).image.size == race.stat().st_size


def test_a_file_with_damage_is_read_again(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copyfile(CHECKOUT / "samples" / "bin" / "x86_64" / "words", program)
    _until_settled(program)
    files, config = OpenedFiles(), GuestConfig(str(program))
    first = OpenedProgram.open(config, files)
    assert OpenedProgram.open(config, files).image is first.image
    first.image.damage.note("its lines")
    assert first.damage()
    assert OpenedProgram.open(config, files).image is not first.image


def _until_settled(path: Path) -> None:
    """Wait until the clock of files has gone on since a file was changed."""
    while not disk_state(path.stat()):
        pass
