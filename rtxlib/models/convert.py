"""A pretrained encoder made into a loop: fewer layers of its own, passed several times.

The method is that of Relaxed Recursive Transformers (Bae et al. 2024). A converted encoder is trained further, because a pass
meets states that its layers have not seen.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rtxlib.errors import InputError, nearest
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, without_weights
from rtxlib.models.layers import MATRICES, NORMS

STARTS = ("lower", "spread", "average")


def to_loop(
    source: Encoder,
    layers: int,
    passes: int,
    start: str = "lower",
    rank: int | None = None,
    pass_norms: bool = False,
    edges: bool = False,
    depth_sampling: str = "fixed",
) -> Encoder:
    """An encoder of ``layers`` shared layers passed ``passes`` times, made from the layers of ``source``.

    Args:
        source: an encoder without a loop; it stays as it is
        layers: N, layers of the block. With ``edges`` the first and the last layer of the source stay outside the loop,
            and ``layers`` counts those inside.
        passes: R. One pass is the control: the same layers without a loop.
        start: "lower" takes the lowest N layers, "spread" takes N layers at even distances, the first and the last among
            them (of one layer the first), and "average" takes the mean of the layers that a shared layer replaces (i, i + N,
            i + 2N, …).
        rank: the rank of what each pass adds to the shared matrices. It starts from the singular values of the difference
            between the source's matrix and the shared one, so with full rank the loop computes what the source computes.
        pass_norms: each pass starts with the norms of the source's layers that it replaces
        depth_sampling: "uniform" lets the training draw the passes of each batch from 1 to R, so that a label can be read after
            any of them

    Raises:
        InputError: the source has a loop, N layers are more than it has, or the layers that a shared layer replaces do not
            match (N·R layers are needed for ``rank`` and ``pass_norms``, a multiple of N for "average").
    """
    theirs = list(source.stack.blocks[0])
    if source.config.recurrent_depth > 1 or source.config.prelude_layers or source.config.coda_layers:
        raise InputError("This encoder has a loop already; name one with a plain stack of layers.")
    inner = theirs[1:-1] if edges else theirs
    if not 1 <= layers <= len(inner):
        where = f"the {len(inner)} between its first and last" if edges else f"{len(inner)}"
        raise InputError(f"A block of {layers} layers cannot be made from {where} layers of this encoder.")
    if start not in STARTS:
        raise InputError(f"A loop starts from {', '.join(STARTS)}, not '{start}'.{nearest(start, STARTS)}")
    relaxed = bool(rank or pass_norms)
    if relaxed and layers * passes != len(inner):
        raise InputError(
            f"What each pass has of its own is taken from the layer that it replaces, so {layers} × {passes} must be "
            f"{len(inner)}, the layers of this encoder{' between its edges' if edges else ''}."
        )
    if start == "average" and len(inner) % layers:
        raise InputError(f"{len(inner)} layers cannot be averaged into {layers}; choose a number that divides {len(inner)}.")
    replaced = [inner[number::layers] for number in range(layers)]  # the layers that each shared layer stands for
    if relaxed or start == "average":
        _check_alike(replaced)

    with without_weights():
        loop = Encoder(loop_config(source.config, layers, passes, rank, pass_norms, edges, depth_sampling))
    loop.to_empty(device="cpu")
    for name, part in source.named_children():
        if name != "stack":
            getattr(loop, name).load_state_dict(part.state_dict())
    for ours, theirs_at in ((loop.stack.prelude, theirs[:1]), (loop.stack.coda, theirs[-1:])):
        for layer, taken in zip(ours, theirs_at, strict=False):  # without edges both lists of ours are empty
            layer.load_state_dict(taken.state_dict())
    for number, layer in enumerate(loop.stack.blocks[0]):
        match start:
            case "lower":
                state = inner[number].state_dict()
            case "spread":
                state = inner[number * (len(inner) - 1) // max(layers - 1, 1)].state_dict()
            case "average":
                state = _mean([one.state_dict() for one in replaced[number]])
        layer.load_state_dict(state)
        for pass_index in range(passes if relaxed else 0):
            _take(loop.stack.of_pass[pass_index][number], layer, replaced[number][pass_index])
    loop.loaded = source.loaded
    return loop.eval()


def loop_config(
    source: ModelConfig,
    layers: int,
    passes: int,
    rank: int | None = None,
    pass_norms: bool = False,
    edges: bool = False,
    depth_sampling: str = "fixed",
) -> ModelConfig:
    """The configuration of the encoder that :func:`to_loop` makes. Raises InputError for fields that contradict each other."""
    config = copy.deepcopy(source)
    config.num_hidden_layers, config.recurrent_depth = layers, passes
    if passes > 1:
        config.residual = "none"  # so that the loop differs from a stack in sharing alone
    config.prelude_layers = config.coda_layers = int(edges)
    config.pass_norms, config.pass_rank = pass_norms, rank
    config.depth_sampling = depth_sampling
    config.check()
    return config


def _check_alike(replaced: Sequence[Sequence[nn.Module]]) -> None:
    """Raise InputError if layers that one shared layer replaces differ in kind, as local and global ones do."""
    for group in replaced:
        kinds = {(layer.local, tuple(layer.state_dict())) for layer in group}
        if len(kinds) > 1:
            raise InputError(
                "The layers that one shared layer would replace differ in kind; only start 'lower' or 'spread' fits."
            )


def _mean(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([state[name] for state in states]).mean(dim=0) for name in states[0]}


def _take(layer: nn.Module, shared: nn.Module, replaced: nn.Module) -> None:
    """Start what a pass has of its own at the layer it replaces: its norms, and what sharing takes from its matrices."""
    for name in NORMS:
        if (norm := getattr(layer, name)) is not None:
            norm.load_state_dict(getattr(replaced, name).state_dict())
    for name, path in MATRICES.items():
        if (addition := getattr(layer, name)) is not None:
            wanted, has = replaced.get_submodule(path), shared.get_submodule(path)
            bias = torch.zeros(len(wanted.weight)) if wanted.bias is None else wanted.bias - has.bias
            addition.approximate(wanted.weight - has.weight, bias)
