"""The process in which Keystone works: questions come a line each, and answers go back likewise.

Run as a file, so that Python loads nothing of the project. See `engine.insn.asm`.
"""

import json
import resource
import sys
from functools import reduce
from operator import or_
from typing import Any


def main(memory: int) -> None:
    """Answer questions until there are no more.

    A question is [KS_ARCH_..., [KS_MODE_...], address, text]. An answer has "code" (hexadecimal,
    "" for no instruction) or "error"; the first one, to no question, has "missing" where Keystone
    is not installed.

    Args:
        memory: bytes that the process may have.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        import keystone
    except ImportError:
        print(json.dumps({"missing": True}), flush=True)
        return
    print("{}", flush=True)
    engines: dict[tuple[str, ...], Any] = {}
    for line in sys.stdin:
        arch, modes, address, text = json.loads(line)
        key = arch, *modes
        try:
            if key not in engines:
                mode = reduce(or_, (getattr(keystone, name) for name in modes), 0)
                engines[key] = keystone.Ks(getattr(keystone, arch), mode)
            code, count = engines[key].asm(text, address, as_bytes=True)
            answer = {"code": code.hex() if code and count else ""}
        except keystone.KsError as error:
            answer = {"error": str(error.message)}
        except MemoryError:
            answer = {"error": "takes too much memory"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
