"""``python -m engine``: make a recording, or check what a device can do. Parses arguments; the work is elsewhere."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__)
    parser.add_argument("command", choices=("record", "devicecheck"), help="what to do; each has its own --help")
    command = parser.parse_args(given[:1]).command
    own = argparse.ArgumentParser(prog=f"python -m engine {command}")
    # Imported here: --help of this file must not need torch, and devicecheck must need nothing else.
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed here; requirements.txt lists what a run needs.", file=sys.stderr)
        return 2
    if command == "record":
        from engine import record

        record.add_arguments(own)
        return record.main(own.parse_args(given[1:]))
    from engine.devicecheck import add_arguments
    from engine.devicecheck import main as check

    add_arguments(own)
    return check(own.parse_args(given[1:]))


if __name__ == "__main__":
    sys.exit(main())
