"""Runs at the start of every Python process of a tested server, by way of PYTHONPATH.

WITHOUT names packages that this process shall not find, as on a machine where they were never installed: a finder that
answers None is what ``find_spec`` and ``import`` both see there. SCRIPT_LOG is a file that gets the id of each process
in which the page's script was executed.
"""

import os
import sys
from importlib.machinery import PathFinder

absent = set(os.environ.get("WITHOUT", "").split())
script_log = os.environ.get("SCRIPT_LOG")


class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else super().find_spec(name, path, target)


def note_script(event, arguments):
    if event == "exec" and getattr(arguments[0], "co_filename", "").replace("\\", "/").endswith("ui/main.py"):
        with open(script_log, "a") as log:
            log.write(f"{os.getpid()}\n")


if absent:
    sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
if script_log:
    sys.addaudithook(note_script)
