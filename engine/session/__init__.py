"""The one facade: builds a guest and everything below it, runs it, reports.

The command line and the terminal interface are equal clients of what is here:

- `session`: a guest from its start to its end; `config`, `paths`, `report` around it.
- Places: `libraries`, `places`, `ranges`, `lookup`, `inlined` find them, `placing` judges them,
  `probing` puts probes there.
- Traces: `tracing` turns definitions into recorded events; `triggers`, `syscalls`, `stacks`,
  `output`, `exporting`, `handlers` are its parts; `graphing` and its helpers trace functions.
- A guest under control: `control` obeys `commands`, tells `events`, shows `views` (made by
  `viewing`); `running` and `stepping` move the guest, `book`, `eventrules` and `editing` keep what
  the user has placed and changed, `terminal` is the guest's own.
- Without a guest: `inspection`, `listing`, and `browser` with `coderows` and `completing`.
- `effect` with `replay` compares two runs; `backtrace` and `stopping` are `bt`; `bench` measures.
"""

from engine.session.config import GuestConfig
from engine.session.report import Report, Reports
from engine.session.session import Session

__all__ = ["GuestConfig", "Report", "Reports", "Session"]
