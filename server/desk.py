"""The desk at which the page asks: state, start, stop, delete, list, add. One object for all of Streamlit's threads.

It only joins the rooms behind it (``runs.py``, ``store.py``, the sources by name, the installer); every rule lives
there. Callers are script threads; nothing here waits longer than ``runs.FIRST_LINE_WAIT_S``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO, Protocol

from server.hub import Bell
from server.runs import Runs, Simulator, Source
from server.status import InstallReport, Recording, Started, Status, Worker
from sim.scenario import Scenario
from telemetry.protocol import RunRequest


class Installer(Protocol):
    """Whoever installs the live engine beside the running page."""

    def status(self) -> InstallReport: ...
    def start(self) -> None:
        """Begin, or begin again after a failure; nothing happens when it runs, is done or is switched off."""


class Server:
    """The server as the page's script sees it. ``bell`` rings whenever ``status`` may have changed."""

    def __init__(
        self,
        runs: Runs,
        sources: Mapping[str, Source],
        bell: Bell,
        installer: Installer | None = None,
        simulator: Simulator | None = None,
    ) -> None:
        self.runs = runs
        self.bell = bell
        self._sources = dict(sources)
        self._installer = installer
        self._simulator = simulator
        for source in self._sources.values():
            source.on_change(bell.ring)

    def status(self) -> Status:
        """The installation, the engine of this machine, and whose run is on it."""
        install = self._installer.status() if self._installer else None
        worker = Worker.of(self._sources["live"].status())
        return Status(worker, install, self.runs.busy_run_id, self.runs.problem)

    def install_live_set(self) -> None:
        """Have the live engine installed, or tried again after a failure. Returns at once."""
        if self._installer is not None:
            self._installer.start()

    def start(self, source: str, request: RunRequest) -> Started:
        """Begin a run. Raises Busy while another is on the machine, ValueError with a sentence when it cannot run."""
        if source not in self._sources:
            raise ValueError("This page does not know that way to run a model.")
        return self.runs.start(self._sources[source], request)

    def simulate(self, scenario: Scenario) -> Started:
        """Make a simulated run, whole. Raises ValueError with a sentence, such as when it does not fit."""
        if self._simulator is None:
            raise ValueError("This server does not simulate runs.")
        return self.runs.simulate(self._simulator, scenario)

    def cancel(self, run_id: str, key: str | None, loopback: bool = False) -> None:
        """Stop a run that goes on. Raises ValueError without its key, LookupError for a run that is over."""
        self.runs.cancel(run_id, key, loopback)

    def delete(self, run_id: str, key: str | None, loopback: bool = False) -> None:
        """Remove a recording. Raises ValueError without its key or for one that stays, LookupError if unknown."""
        self.runs.delete(run_id, key, loopback)

    def recordings(self) -> tuple[Recording, ...]:
        """The shipped recordings, then those made or added here, newest first."""
        return self.runs.recordings()

    def add_recording(self, shown_name: str, stream: BinaryIO) -> Recording:
        """Keep an uploaded trace under a name of our own. Raises ValueError with a sentence when it is not one."""
        return self.runs.add(shown_name, stream)
