"""The `kprobe-tui` command: a subcommand runs headless, else the terminal interface opens."""

import gc
import os
import sys
from contextlib import nullcontext
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # no import of `engine` at the top: it may be a stranger's until that is checked
    from contextlib import AbstractContextManager

    from textual.events import Key

    from engine.cli.interface import InterfaceOptions
    from tui.background import Answers
    from tui.lessons import Lesson
    from tui.settings import Settings
    from tui.terminating_signals import EndingSignals


_COLLECTED: Final = (50_000, 20, 50)
"""Thresholds of the collector: more objects than a start makes, hardly any of them garbage."""


_HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of our packages: site-packages, or a checkout."""


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(*_COLLECTED)
    stranger = shadowing_file()
    if stranger:
        sys.stderr.write(
            f"kprobe-tui: {ascii(stranger)[1:-1]} is in the way: Python takes it for kprobe-tui's "
            f"own package engine, which is in {ascii(_HOME)[1:-1]}\n"
            "kprobe-tui: hint: take its folder out of PYTHONPATH, or rename it\n"
        )
        sys.exit(2)
    from engine.cli import end_soon  # makes 10,000 objects
    from engine.cli import main as run_command
    from tui.subcommands import config, learn_command

    others = (config, learn_command(open_lesson))
    code = run_command(sys.argv[1:], open_interface, others)
    end_soon(code)
    gc.freeze()  # Python looks through all there is as it ends, several times
    sys.exit(code)


def shadowing_file() -> str:
    """The file that an import of `engine` would find in place of our own, "" if it finds ours."""
    loaded = sys.modules.get("engine")
    spec = PathFinder.find_spec("engine") if loaded is None else loaded.__spec__
    found = spec.origin if spec is not None else None
    if not found or os.path.realpath(found) == os.path.realpath(f"{_HOME}/engine/__init__.py"):
        return ""
    return found


def forget_current_directory() -> None:
    """Take the current directory off the path that `python -m` has put it on, as -P does.

    A folder or file called engine there would be imported in place of ours.
    """
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) != _HOME:
        del sys.path[0]


def open_lesson(lesson: "Lesson", kernel: str, ascii_only: bool) -> int:
    """Run the terminal interface over the guest of a lesson; the exit code.

    Args:
        lesson: the lesson.
        kernel: the kernel image for a lesson about one, "" for that of this machine.
        ascii_only: draw with ASCII only.

    Raises:
        CommandError: the guest is not there.
    """
    from engine.cli.interface import InterfaceOptions
    from tui.lessons.opening import lesson_config

    options = InterfaceOptions(lesson_config(lesson, kernel), ascii_only=ascii_only)
    return open_interface(options, lesson)


def open_interface(options: "InterfaceOptions", lesson: "Lesson | None" = None) -> int:
    """Run the terminal interface to its end; the exit code.

    Args:
        options: the guest, and how it is shown.
        lesson: the lesson that this is the guest of.

    Raises:
        ImageError: the guest cannot be run.
        CommandError: an option cannot be carried out, or the settings are wrong.
    """
    if options.color == "never":
        os.environ["NO_COLOR"] = "1"  # read by Textual as it is imported
    elif options.color == "always":
        os.environ.pop("NO_COLOR", None)
    # Frames are painted when something has changed; what a key does is to be seen within 8 ms.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    gc.disable()  # what is loaded now stays: nothing is to be found until the app is up
    from engine.cli.options import is_in_page
    from tui.terminating_signals import EndingSignals

    settings = _settings(options)
    if not options.config.guest:
        _need_terminal()
    signals = EndingSignals()
    if is_in_page():
        signals.hear_closing()
    with _asked(settings) as answers:
        return _run(options, lesson, _themed(settings, answers), signals, answers)


def _settings(options: "InterfaceOptions") -> "Settings":
    """The user's settings, and what options and the locale add to them."""
    from msgspec.structs import replace

    from engine.cli.options import is_in_page
    from tui.settings import load_settings
    from tui.surroundings import has_only_ascii, initial_environment

    settings = load_settings()
    plain = settings.ascii or options.ascii_only
    if not plain and not is_in_page():
        plain = has_only_ascii(initial_environment())
    return replace(settings, ascii=plain)


def _asked(settings: "Settings") -> "AbstractContextManager[Answers | None]":
    """The terminal's answers about its background, where that decides anything."""
    from engine.cli.options import is_in_page
    from tui.background import asked_terminal, may_ask

    chosen = settings.theme or "NO_COLOR" in os.environ
    if chosen or is_in_page() or not may_ask(os.environ):
        return nullcontext()
    return asked_terminal()


def _themed(settings: "Settings", answers: "Answers | None") -> "Settings":
    """The settings, with the light theme on a light background if the user has chosen none."""
    # Textual takes a quarter of a second to import: only who sees it pays for that, and the
    # terminal answers meanwhile.
    import tui.app  # noqa: F401
    from engine.cli.options import is_in_page

    if settings.theme or is_in_page():
        return settings
    from msgspec.structs import replace

    from tui.surroundings import has_light_background, initial_environment

    if answers is not None:
        answers.wait()
    light = answers.light if answers is not None else None
    if light is None:
        light = has_light_background(initial_environment())
    return replace(settings, theme="textual-light") if light else settings


def _run(
    options: "InterfaceOptions",
    lesson: "Lesson | None",
    settings: "Settings",
    signals: "EndingSignals",
    answers: "Answers | None",
) -> int:
    """Show the picker where there is no guest, and one app after the other; the exit code."""
    from engine.cli.options import is_in_page
    from engine.errors import CommandError
    from tui.app import KprobeApp
    from tui.asked_driver import driver_after
    from tui.background import forget_typed

    guest = options.config
    in_page, size = is_in_page(), None
    typed: list[Key] = []
    if not guest.guest:
        from msgspec.structs import replace

        from tui.samples import Picker

        picker = Picker(settings.theme, settings.ascii, in_page)
        signals.app = picker
        if in_page:
            from tui.page_drivers import FirstDriver

            picker.driver_class = FirstDriver
        else:
            picker.driver_class = driver_after(answers, keys=typed)
        picked = picker.run()
        if not isinstance(picked, str):  # by a key, or a signal
            if not in_page:
                forget_typed()
            return picker.return_code or 0
        if picker.lesson is not None:
            from tui.lessons.opening import lesson_config

            lesson = picker.lesson
            guest = lesson_config(lesson)
        else:
            guest = replace(guest, guest=picked)
        size = picker.size if in_page else None
        typed = picker.behind_choice(typed)
    while True:
        app = KprobeApp(
            guest,
            definitions=options.definitions if lesson is None else (),
            kernel_rules=options.kernel_rules if lesson is None else lesson.guest.kernel_rules,
            settings=settings,
            fresh=options.fresh or lesson is not None,
            lesson=lesson,
        )
        try:
            _need_terminal()
        except CommandError:
            app.bridge.close()
            raise
        signals.app = app
        if size is not None:
            from tui.page_drivers import NextDriver

            app.driver_class = NextDriver
        elif not in_page:
            app.driver_class = driver_after(answers, typed)
        result = app.run(size=size)
        lesson = app.lessons.wanted
        if lesson is None:
            return result if isinstance(result, int) else app.return_code or 0
        from tui.lessons.opening import lesson_config

        guest = lesson_config(lesson)
        size = app.size if in_page else None
        typed = []


def _need_terminal() -> None:
    from engine.cli.options import is_in_page

    if is_in_page():
        return
    if not os.isatty(0) or not os.isatty(1):
        from engine.errors import CommandError

        raise CommandError("the interface needs a terminal; 'kprobe-tui run' works without one")
    from tui.surroundings import moves_cursor

    if not moves_cursor(os.environ):
        from engine.errors import CommandError

        raise CommandError(
            f"a terminal of the type {os.environ['TERM']} cannot be drawn on; 'kprobe-tui run' and"
            " --batch work there, and TERM names another type"
        )


if __name__ == "__main__":
    forget_current_directory()
    main()
