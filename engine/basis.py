"""What a prediction for this machine rests on: the built backend's own facts and the ceilings measured here.

Made before a run, by the same choice of ceilings as the run's header, so that predicted and measured shares are shares
of the same figures.
"""

from __future__ import annotations

from engine import ceilings
from engine.header import Setting, devices_of, weights_read
from sim.here import Basis


def basis_of(setting: Setting) -> Basis | None:
    """None where a ceiling is not known."""
    backend, machine = setting.backend, setting.machine
    prefill, decode = backend.compute_dtype("prefill"), backend.compute_dtype("decode")
    chosen = ceilings.choose(devices_of(setting)[0], prefill, decode, weights_read(backend))
    if chosen.prefill_compute is None or chosen.decode_compute is None or chosen.memory is None:
        return None
    same = backend.weight_bytes("prefill").layers == backend.weight_bytes("decode").layers
    return Basis(
        spec=setting.spec,
        machine=machine.name,
        kind=machine.device.type,
        memory_bytes=machine.memory_bytes,
        native=backend.path == "native",
        graphs=setting.cuda_graph,
        prefill_weights=backend.precision if same else prefill,
        decode_weights=backend.precision,
        prefill_flops_per_s=chosen.prefill_compute.value,
        decode_flops_per_s=chosen.decode_compute.value,
        bytes_per_s=chosen.memory.value,
        chunk_tokens=backend.prefill_chunk,
        kv_bytes_per_element=backend.kv_bytes_per_element,
    )
