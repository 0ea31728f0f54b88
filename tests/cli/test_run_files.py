"""Host files look to a guest as they do to the programs of the host: numbers, owners, times."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from compiled import build, tool
from guestrun import Outcome, run

LOOK = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
static void show(const char *name) {
    struct stat st; struct statx stx; char line[512];
    if (lstat(name, &st)) { printf("%s: gone\n", name); return; }
    statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stx);
    printf("%s %lx %lu %o %lu %u:%u %ld %ld.%09ld %ld.%09ld; %d\n", name, st.st_dev, st.st_ino,
           st.st_mode, S_ISDIR(st.st_mode) ? 0 : st.st_nlink, st.st_uid, st.st_gid, st.st_size,
           st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
           makedev(stx.stx_dev_major, stx.stx_dev_minor) == st.st_dev && stx.stx_ino == st.st_ino);
    int fd = S_ISREG(st.st_mode) ? open(name, O_RDONLY) : -1;
    if (fd < 0) return;
    char *at = mmap(0, 1, PROT_READ, MAP_PRIVATE, fd, 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long low; char device[32]; unsigned long inode;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%*x %*s %*x %31s %lu", &low, device, &inode) == 3 && low == (long)at)
            printf("  mapped %s %lu\n", device, inode);
    fclose(maps);
    munmap(at, 1);
    close(fd);
}
int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) show(argv[n]);
    DIR *here = opendir(".");
    for (struct dirent *one; (one = readdir(here));)
        for (int n = 1; n < argc; n++)
            if (!strcmp(argv[n], one->d_name)) printf("%s %lu\n", argv[n], one->d_ino);
    return 0;
}
"""
CHANGE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static struct stat of(const char *name) { struct stat st; stat(name, &st); return st; }
static int same(struct stat a, struct stat b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
int main(void) {
    struct stat file = of("file"), here = of("."), up = of("/tmp");
    close(open("file", O_WRONLY | O_APPEND));
    int fd = open("file", O_WRONLY | O_APPEND);
    printf("write %d, ", write(fd, "x", 1) == 1 && same(file, of("file")));
    close(fd);
    chmod("other", 0600);
    rename("other", "moved");
    close(open("new", O_CREAT | O_WRONLY, 0644));
    mkdir("folder", 0755);
    close(open("folder/new", O_CREAT | O_WRONLY, 0644));
    close(open("/tmp/new", O_CREAT | O_WRONLY, 0644));
    struct stat made[] = {of("new"), of("folder"), of("folder/new"), of("/tmp/new"), of("moved"),
                          of("file"), of("hard"), here, up, of("/proc"), of("/dev"), of("/sys")};
    int twice = 0, count = sizeof made / sizeof *made;
    for (int n = 0; n < count; n++)
        for (int m = 0; m < n; m++) twice += same(made[n], made[m]);
    printf("hard link %d, twice %d, ", same(file, of("hard")), twice);
    printf("on one device %d\n", made[1].st_dev == here.st_dev && made[2].st_dev == here.st_dev);
    return 0;
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The current directory, with two programs beside it."""
    build(tmp_path, "look", LOOK, "-O1", "-w")
    build(tmp_path, "change", CHANGE, "-O1", "-w")
    path = tmp_path / "home"
    (path / "folder").mkdir(parents=True)
    (path / "file").write_text("some text\n")
    (path / "other").write_text("")
    os.link(path / "file", path / "hard")
    os.symlink("file", path / "link")
    os.utime(path / "other", ns=(1_600_000_000_123_456_789, 1_600_000_001_987_654_321))
    return path


SHOWN = ("file", "other", "hard", "link", "folder")


@pytest.mark.parametrize("mode", ["", ":", ":rw"], ids=["here", "share", "writable"])
def test_what_stat_shows_is_the_hosts(mode: str, home: Path) -> None:
    program = str(home.parent / "look")
    natively = subprocess.run([program, *SHOWN], cwd=home, capture_output=True, text=True).stdout
    if os.geteuid() == 0:  # a guest of root's owns root's directories
        natively = re.sub(r"^(folder .*) 0:0 ", r"\1 1000:1000 ", natively, flags=re.MULTILINE)
    share = ("--share", f"{home}{mode}" if mode == ":rw" else str(home)) if mode else ()
    there = ("--share", str(home.parent / "look"))
    done = run("run", *share, *there, program, *SHOWN, cwd=home)
    assert (done.code, sorted(done.out.splitlines())) == (0, sorted(natively.splitlines()))
    assert natively.count("; 1\n") == len(SHOWN)


@pytest.mark.parametrize("share", [False, True], ids=["private", "writable"])
def test_a_changed_file_keeps_its_numbers_and_a_new_one_has_its_own(
    share: bool, home: Path
) -> None:
    (home / "folder").rmdir()
    options = ("--share", f"{home}:rw") if share else ()
    (home / "hard").unlink()
    os.link(home / "file", home / "hard")
    done = run("run", *options, str(home.parent / "change"), cwd=home)
    assert done.out == "write 1, hard link 1, twice 1, on one device 1\n", done.err


# -- git ------------------------------------------------------------------------------------------

FILES = 12


class Repository:
    """A repository whose files are older than its index, and git in it natively."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git = tool("git")
        path.mkdir()
        self.env = {"HOME": str(path), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
        self("init", "-q")
        for number in range(FILES):
            (path / f"f{number}.txt").write_text(f"file {number}\n")
            os.utime(path / f"f{number}.txt", ns=(10**18, 10**18))
        self("add", ".")
        self("-c", "user.name=n", "-c", "user.email=n@e", "commit", "-q", "-m", "one")

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [self.git, *words], cwd=self.path, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def guest(self, *words: str, options: tuple[str, ...] = ()) -> Outcome:
        given = [word for pair in self.env.items() for word in ("--env", "=".join(pair))]
        listing = ("-o", str(self.path / ".git" / "opened"), "-e", "syscalls/openat")
        command = ("trace", *listing, *options, "--clean-env", *given, self.git, *words)
        return run(*command, cwd=self.path)

    @property
    def opened(self) -> int:
        """Files of the work tree that the guest's git opened."""
        text = (self.path / ".git" / "opened").read_text()
        return sum(f"f{number}.txt" in text for number in range(FILES))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


@pytest.mark.parametrize("share", ["", ":rw"], ids=["here", "writable"])
def test_git_reads_no_file_again(share: str, repository: Repository) -> None:
    options = ("--share", f"{repository.path}{share}") if share else ()
    index = (repository.path / ".git" / "index").read_bytes()
    done = repository.guest("status", options=options)
    assert "nothing to commit" in done.out, done.err
    assert repository.opened == 0
    assert repository.guest("diff-files", options=options).out == ""
    assert (repository.path / ".git" / "index").read_bytes() == index


def test_an_index_that_a_guest_writes_is_good_on_the_host(repository: Repository) -> None:
    for number in range(FILES):
        path = repository.path / f"f{number}.txt"
        shutil.copy2(path, path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
    assert repository("diff-files").count("\n") == FILES  # other inodes: to be read once
    done = repository.guest("status", options=("--share", f"{repository.path}:rw"))
    assert "nothing to commit" in done.out, done.err
    assert repository.opened == FILES
    assert repository("diff-files") == ""


# -- owners and times -----------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_files_show_their_owner_to_a_guest_of_roots(home: Path) -> None:
    os.chown(home / "other", 12345, 23456)
    (home / "other").chmod(0o600)
    for options in ((), ("--share", f"{home}:rw")):
        words = (
            "id -u; stat -c %u:%g other file .; cat file; cat other; chmod 644 other;"
            " chmod 600 file && test -r other; echo $?; echo >> other"
        )
        done = run("run", *options, "/bin/sh", "-c", words, cwd=home)
        assert done.out == "1000\n12345:23456\n0:0\n1000:1000\nsome text\n1\n", done.err
        assert done.err.count("denied") + done.err.count("not permitted") == 3
    assert (home / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() == 0, reason="root's guests are another user")
def test_a_guest_is_the_user_who_runs_the_tool(home: Path) -> None:
    done = run("run", "/bin/sh", "-c", "id -u; id -g; stat -c %u:%g . file", cwd=home)
    own = f"{os.getuid()}:{os.getgid()}"
    assert done.out == f"{os.getuid()}\n{os.getgid()}\n{own}\n{own}\n", done.err


def test_the_present_is_the_hosts_where_files_are(home: Path) -> None:
    before = time.time()
    touched = ("/bin/sh", "-c", "touch other; date +%s")
    done = run("run", "--share", f"{home}:rw", *touched, cwd=home)
    assert before - 1 <= (home / "other").stat().st_mtime <= time.time()
    assert before <= int(done.out) + 1 <= time.time() + 3
    old = run("run", "--share", f"{home}:rw", "--start", "@1500000000", *touched, cwd=home)
    assert int(old.out) == 1_500_000_000
    assert before - 1 <= (home / "other").stat().st_mtime


def test_no_file_is_of_the_future(home: Path) -> None:
    words = ("/bin/sh", "-c", "test -w file && touch new && find new -newer file; date +%a%s")
    done = run("run", *words, cwd=home, env={"LC_ALL": "C"})
    new, day = done.out.split()
    assert (new, day[:3]) == ("new", "Mon"), done.err
    assert 0 < int(day[3:]) - time.time() <= 8 * 86_400
