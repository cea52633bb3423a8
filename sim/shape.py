"""A model as the list of its weight matrices: the one place that knows them, for FLOPs, bytes and counts alike.

Each product of a forward pass is one ``Matrix``; all costs are sums over this list, so no two figures can disagree
about what a model is made of. With tensor parallelism the list is one rank's share (Megatron-LM, arXiv:1909.08053):
projections into heads and MLP columns are split by output, those back into the hidden width by input; routers and
latent down-projections are replicated; KV heads are replicated once ranks outnumber them.

Not covered: expert and pipeline parallelism, vision and audio towers, multi-token-prediction heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from sim.families import family_of
from sim.specs import ModelSpec

Part = Literal["attention", "mlp", "experts"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """One weight matrix (n_in, n_out) of ``layers`` layers, ``copies`` to a layer of which a token passes ``used``.

    ``same_input``: it reads the input of the matrix before it, as fused QKV and gate-up kernels do.
    """

    role: str
    part: Part
    n_in: int
    n_out: int
    layers: int
    copies: int = 1
    used: int = 1
    same_input: bool = False

    @property
    def weights(self) -> int:
        return self.layers * self.copies * self.n_in * self.n_out

    @property
    def flops_per_token(self) -> int:
        return 2 * self.layers * self.used * self.n_in * self.n_out

    @property
    def activation_elements_per_token(self) -> int:
        return self.layers * self.used * ((0 if self.same_input else self.n_in) + self.n_out)


@dataclass(frozen=True, slots=True)
class Vectors:
    """Weights that are no matrices, over all layers: ``norms``, ``biases`` (sinks too), ``expert_biases``."""

    norms: int
    biases: int
    expert_biases: int


def check_tensor_parallel(spec: ModelSpec, tensor_parallel: int) -> None:
    """Raises ValueError with one sentence where the heads cannot be shared out evenly over the ranks."""
    if isinstance(tensor_parallel, bool) or not isinstance(tensor_parallel, int) or tensor_parallel < 1:
        raise ValueError(f"Tensor parallelism needs a whole number of devices, 1 or more, not {tensor_parallel!r}.")
    if spec.n_heads % tensor_parallel:
        raise ValueError(
            f"{spec.name} has {spec.n_heads} attention heads, which {tensor_parallel} devices cannot share evenly; "
            "take a number of devices that divides it."
        )
    kv = spec.n_kv_heads
    if spec.latent is None and kv % tensor_parallel and tensor_parallel % kv:
        raise ValueError(
            f"{spec.name} has {kv} KV heads, which {tensor_parallel} devices can neither share nor repeat evenly; "
            "take a divisor or a multiple of it."
        )


def kv_heads_per_rank(spec: ModelSpec, tensor_parallel: int) -> int:
    """KV heads that one rank holds: its share, at least one, since a head cannot be split."""
    return max(1, spec.n_kv_heads // tensor_parallel)


@cache
def matrices(spec: ModelSpec, tensor_parallel: int = 1) -> tuple[Matrix, ...]:
    """All matrices of one rank's layers (embedding and head are not among them: they stand in ``ModelSpec``).

    Raises ValueError where the ranks cannot share the heads.
    """
    check_tensor_parallel(spec, tensor_parallel)
    attention = _latent_attention(spec, tensor_parallel) if spec.latent else _attention(spec, tensor_parallel)
    return attention + _dense_mlp(spec, tensor_parallel) + _experts(spec, tensor_parallel)


def vectors(spec: ModelSpec) -> Vectors:
    """Norms and biases of the whole model; none of them is worth splitting."""
    return Vectors(_norms(spec), _biases(spec), _expert_biases(spec))


def dense_layers(spec: ModelSpec) -> int:
    """Layers with a plain MLP."""
    return spec.experts.first_dense_layers if spec.experts else spec.n_layers


def query_value_dims(spec: ModelSpec) -> tuple[int, int]:
    """Width of one head's query and key, and of its value."""
    if spec.latent:
        return spec.latent.nope_dim + spec.latent.rope_dim, spec.latent.value_dim
    return spec.head_dim, spec.head_dim


def ceil_share(total: int, ranks: int) -> int:
    """The largest rank's share: what does not divide evenly is padded."""
    return -(-total // ranks)


def _attention(spec: ModelSpec, ranks: int) -> tuple[Matrix, ...]:
    queries = spec.n_heads // ranks * spec.head_dim
    keys = kv_heads_per_rank(spec, ranks) * spec.head_dim
    return (
        Matrix("query", "attention", spec.hidden, queries, spec.n_layers),
        Matrix("key", "attention", spec.hidden, keys, spec.n_layers, same_input=True),
        Matrix("value", "attention", spec.hidden, keys, spec.n_layers, same_input=True),
        Matrix("output", "attention", queries, spec.hidden, spec.n_layers),
    )


def _latent_attention(spec: ModelSpec, ranks: int) -> tuple[Matrix, ...]:
    assert spec.latent is not None
    latent, heads, layers = spec.latent, spec.n_heads // ranks, spec.n_layers
    query_width = heads * (latent.nope_dim + latent.rope_dim)
    query: tuple[Matrix, ...] = (Matrix("query", "attention", spec.hidden, query_width, layers),)
    if latent.query_rank:
        query = (
            Matrix("query_down", "attention", spec.hidden, latent.query_rank, layers),
            Matrix("query_up", "attention", latent.query_rank, query_width, layers),
        )
    up = heads * (latent.nope_dim + latent.value_dim)
    return (
        *query,
        Matrix("latent_down", "attention", spec.hidden, latent.kv_rank + latent.rope_dim, layers, same_input=True),
        Matrix("latent_up", "attention", latent.kv_rank, up, layers),
        Matrix("output", "attention", heads * latent.value_dim, spec.hidden, layers),
    )


def _dense_mlp(spec: ModelSpec, ranks: int) -> tuple[Matrix, ...]:
    layers = dense_layers(spec)
    if not layers:
        return ()
    return _mlp(spec, "", "mlp", ceil_share(spec.intermediate, ranks), layers, 1, 1)


def _experts(spec: ModelSpec, ranks: int) -> tuple[Matrix, ...]:
    experts = spec.experts
    if experts is None:
        return ()
    layers = spec.n_layers - experts.first_dense_layers
    router = (Matrix("router", "mlp", spec.hidden, experts.count, layers),)
    width = ceil_share(experts.intermediate, ranks)
    routed = _mlp(spec, "expert_", "experts", width, layers, experts.count, experts.per_token)
    if not experts.shared:
        return router + routed
    shared_width = ceil_share(experts.shared_intermediate or experts.intermediate, ranks)
    return router + routed + _mlp(spec, "shared_", "mlp", shared_width, layers, experts.shared, experts.shared)


def _mlp(
    spec: ModelSpec, prefix: str, part: Part, width: int, layers: int, copies: int, used: int
) -> tuple[Matrix, ...]:
    up = Matrix(prefix + "up", part, spec.hidden, width, layers, copies, used)
    down = Matrix(prefix + "down", part, width, spec.hidden, layers, copies, used)
    if not family_of(spec.family).gated:
        return (up, down)
    return (up, replace(up, role=prefix + "gate", same_input=True), down)


def _norms(spec: ModelSpec) -> int:
    family = family_of(spec.family)
    per_layer = family.norms * family.norm_vectors * spec.hidden
    if family.query_key_norm:
        per_layer += 2 * spec.head_dim
    if spec.latent:
        per_layer += (spec.latent.query_rank or 0) + spec.latent.kv_rank
    return spec.n_layers * per_layer + family.norm_vectors * spec.hidden


def _biases(spec: ModelSpec) -> int:
    family = family_of(spec.family)
    attention = (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim if spec.qkv_bias else 0
    attention += spec.hidden if family.output_bias else 0
    attention += spec.n_heads if family.sinks else 0
    mlp = spec.intermediate + spec.hidden if family.mlp_bias and not family.gated else 0
    router = spec.experts.count if spec.experts and family.router_bias else 0
    moe_layers = spec.n_layers - dense_layers(spec)
    head = spec.vocab if family.head_bias else 0
    return spec.n_layers * attention + dense_layers(spec) * mlp + moe_layers * router + head


def _expert_biases(spec: ModelSpec) -> int:
    if spec.experts is None or not family_of(spec.family).mlp_bias:
        return 0
    layers = spec.n_layers - spec.experts.first_dense_layers
    return layers * spec.experts.count * (2 * spec.experts.intermediate + spec.hidden)
