"""The installer against a scripted pip: the same command line, the same output, no network."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.install import Installer, InstallStatus, PipOutput, missing

# What pip 26 really prints with --progress-bar raw (shortened).
TRANSCRIPT = """\
Collecting torch==2.13.0 (from -r requirements.txt (line 3))
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (888.1 MB)
Progress 262144 of 888100000
Progress 888100000 of 888100000
Collecting gguf<0.20,>=0.19
  Downloading https://files.example/packages/gguf-0.19.0-py3-none-any.whl.metadata
Progress 512 of 0
Installing collected packages: torch, gguf
"""

MakeInstaller = Callable[..., Installer]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeInstaller]:
    """An installer whose pip is a script, and whose list asks for a package that cannot be there."""
    made: list[Installer] = []
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("siliconscope-no-such-package==1\n")

    def build(pip_script: str = "", enabled: bool = True, requirements: Path = wanted) -> Installer:
        script = tmp_path / "pip.py"
        script.write_text(pip_script)
        installer = Installer(
            pip=(sys.executable, str(script)),
            requirements=requirements,
            model=requirements,
            lock=tmp_path / "lock",
            environment={"SILICONSCOPE_INSTALL": "1"} if enabled else {},
        )
        made.append(installer)
        return installer

    yield build
    for installer in made:
        installer.close()


def finish(installer: Installer) -> list[InstallStatus]:
    """Starts it and waits for the end; every status on the way."""
    seen: list[InstallStatus] = []
    ended = threading.Event()

    def note(status: InstallStatus) -> None:
        seen.append(status)
        if status.state in ("done", "failed"):
            ended.set()

    installer.on_change = note
    installer.start()
    assert ended.wait(20)
    return seen


def test_bytes_are_those_pip_says_and_no_share_without_a_total() -> None:
    output = PipOutput()
    statuses = [output.feed(line) for line in TRANSCRIPT.splitlines()]
    assert statuses[1].doing == "Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (888.1 MB), file 1"
    assert (statuses[1].share, statuses[1].bytes_done) == (None, None)
    assert (statuses[2].bytes_done, statuses[2].bytes_total) == (262144, 888100000)
    assert statuses[3].share == 1.0
    assert statuses[5].doing == "Downloading gguf-0.19.0-py3-none-any.whl.metadata, file 2"
    assert (statuses[6].share, statuses[6].bytes_done, statuses[6].bytes_total) == (None, 512, None)
    assert statuses[7].doing == "Unpacking and installing"


@given(st.lists(st.text() | st.builds("Progress {} of {}".format, st.integers(0), st.integers(0))))
def test_no_output_of_pip_breaks_the_reader(lines: list[str]) -> None:
    output = PipOutput()
    for line in lines:
        status = output.feed(line)
        assert status.share is None or 0 <= status.share <= 1
    assert output.reason()


def test_it_installs_the_live_set_then_the_model_without_dependencies(make: MakeInstaller, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    installer = make(f"import sys; open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')")
    assert installer.status().state == "absent"
    assert finish(installer)[-1] == InstallStatus("done")
    calls = log.read_text().splitlines()
    assert len(calls) == 3
    assert calls[0].endswith("pip>=24.1")
    assert "--progress-bar raw -r" in calls[1]
    assert "--no-deps" not in calls[1]
    assert "--no-deps -r" in calls[2]


def test_progress_reaches_the_listener(make: MakeInstaller) -> None:
    seen = finish(make(f"print({TRANSCRIPT!r})"))
    assert any(status.bytes_total == 888100000 for status in seen)


def test_a_failure_quotes_pips_last_error_and_can_be_tried_again(make: MakeInstaller, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    installer = make(
        f"import os, sys\nif os.path.exists({str(mended)!r}): sys.exit()\n"
        "print('ERROR: Could not find a version')\n"
        "print('ERROR: No matching distribution found for torch==2.13.0\\n[notice] x')\n"
        "sys.exit(1)"
    )
    last = finish(installer)[-1]
    assert last.state == "failed"
    assert last.message == (
        "The live set could not be installed: No matching distribution found for torch==2.13.0. "
        "Recordings still play; you can try again."
    )
    mended.touch()
    assert finish(installer)[-1].state == "done"


def test_a_missing_pip_is_a_sentence_too(tmp_path: Path) -> None:
    wanted = tmp_path / "r.txt"
    wanted.write_text("siliconscope-no-such-package\n")
    installer = Installer(
        pip=(str(tmp_path / "no-pip"),),
        requirements=wanted,
        model=wanted,
        lock=tmp_path / "lock",
        environment={"SILICONSCOPE_INSTALL": "1"},
    )
    assert "could not be installed" in (finish(installer)[-1].message or "")
    installer.close()


def test_off_unless_asked_for(make: MakeInstaller, tmp_path: Path) -> None:
    installer = make("raise SystemExit('must not run')", enabled=False)
    installer.start()
    assert installer.status() == InstallStatus("off")


def test_done_when_everything_is_there_already(make: MakeInstaller, tmp_path: Path) -> None:
    present = tmp_path / "present.txt"
    present.write_text("# a comment\npytest>=1  # and another\n")
    assert make(requirements=present, enabled=False).status().state == "done"


def test_missing_reads_includes_versions_and_markers(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("pytest>=99999\n")
    (tmp_path / "all.txt").write_text("-r base.txt\npytest\nnot-there==1; python_version < '3'\nnot-there==2\n")
    assert missing(tmp_path / "all.txt") == ["pytest>=99999", "not-there==2"]


def test_close_ends_the_child_in_the_middle(make: MakeInstaller) -> None:
    installer = make("import time\nprint('  Downloading torch.whl (1 MB)', flush=True)\ntime.sleep(600)")
    downloading = threading.Event()
    installer.on_change = lambda status: downloading.set() if "torch.whl" in status.doing else None
    installer.start()
    assert downloading.wait(20)
    installer.close()
    assert installer.status().state == "failed"
    assert not [thread for thread in threading.enumerate() if thread.name == "install"]


def test_two_servers_do_not_install_at_once(make: MakeInstaller, tmp_path: Path) -> None:
    go, log = tmp_path / "go", tmp_path / "calls"
    script = (
        f"import os, time\nopen({str(log)!r}, 'a').write('x')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)"
    )
    first, second = make(script), make(script)
    waiting, never = threading.Event(), threading.Event()
    first.start()
    second.on_change = lambda status: waiting.set() if status.doing.startswith("Another copy") else None
    while not (log.exists() and log.read_text()):
        never.wait(0.01)
    second.start()
    assert waiting.wait(20)
    assert log.read_text() == "x"
    go.touch()
