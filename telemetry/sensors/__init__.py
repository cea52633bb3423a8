"""The sensors of a machine: one table says which are tried for which kind of device.

To add a sensor, write one file with an opener and add one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from telemetry.sensors.base import Sensor, Unavailable
from telemetry.sensors.cpu import open_cpu
from telemetry.sensors.gpm import GpmSensor
from telemetry.sensors.nvml import NvmlDevice, open_device, open_nvml

__all__ = ["Sensor", "open_sensors"]


def open_sensors(
    device_kind: str, device_uuid: str | None, device_index: int
) -> tuple[list[Sensor], list[dict[str, Any]]]:
    """All sensors for a run on this device, and their entries for ``Header.sensors``.

    ``device_kind``: cpu, cuda or mps. ``device_uuid``: torch's, for cuda. ``device_index``: the run's device in
    ``Header.devices``; the host's own metrics carry None when the run is on a GPU. Each metric is probed live (0.12 s
    for the activity counters); an entry whose probe found nothing has a ``reason``. Raises nothing for missing
    drivers or packages. Close the sensors only after the sampler has stopped.
    """
    sensors = [sensor for opener in _OPENERS for sensor in opener(device_kind, device_uuid, device_index)]
    return sensors, [info.to_json() for sensor in sensors for info in sensor.metrics]


def _nvidia(device_kind: str, device_uuid: str | None, device_index: int) -> list[Sensor]:
    if device_kind != "cuda":
        return []
    gpu: NvmlDevice | str
    try:
        gpu = open_device(device_uuid)
    except Unavailable as error:
        gpu = str(error)
    return [GpmSensor(device_index, gpu), open_nvml(device_index, gpu)]


def _processor(device_kind: str, device_uuid: str | None, device_index: int) -> list[Sensor]:
    return open_cpu(device_index if device_kind == "cpu" else None)


_OPENERS: tuple[Callable[[str, str | None, int], list[Sensor]], ...] = (_nvidia, _processor)
