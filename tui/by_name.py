"""`python -m kprobe_tui`: the command under its own name.

The build puts this file into the wheel as `kprobe_tui/__main__.py` (pyproject.toml).
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current directory, which may hold another `tui`
    from tui.__main__ import main

    main()
