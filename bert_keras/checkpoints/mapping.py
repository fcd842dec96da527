"""Applies a table of names to a model: weights in, strictly, and out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import keras
import numpy as np

from bert_keras.checkpoints.names import Part, Row

POOLER = ("*pooler*", "pooled_dense/*")
"""The names of the pooler, whatever the origin."""

_ALWAYS_UNUSED = ("*position_ids",)


class Place(NamedTuple):
    """Where one of their tensors lies in a model: part of the variable `path`."""

    path: str
    part: Part


def places(model: keras.Model, table: Sequence[Row]) -> dict[str, Place]:
    """Returns the place of each of their tensors that the model has a variable for."""
    known = {variable.path for variable in model.weights}
    found = {}
    for row in table:
        numbers = range(model.backbone.num_layers) if "{n}" in row.ours else (0,)
        for number in numbers:
            path = row.ours.format(n=number)
            if path in known:
                found[row.theirs.format(n=number)] = Place(path, row.part)
    return found


def view(array: np.ndarray, part: Part, num_heads: int) -> np.ndarray:
    """Returns part of one of our arrays in their shape.

    Nothing is copied, so that weights are written through it and read from it.
    """
    if part.third is not None:
        width = array.shape[-1] // 3
        array = array[..., part.third * width : (part.third + 1) * width]
    if part.is_reversed:
        array = array[..., ::-1]
    if part.is_transposed:
        array = array.T
    if part.heads is not None:
        shape, axis = list(array.shape), part.heads % array.ndim
        shape[axis : axis + 1] = [num_heads, shape[axis] // num_heads]
        array = array.reshape(shape)
    return array


def fill(
    model: keras.Model,
    tensors: Mapping[str, np.ndarray],
    table: Sequence[Row],
    source: str,
    *,
    allow: Iterable[str] = (),
    shown: Callable[[str], str] = str,
) -> None:
    """Gives a model their weights: every tensor is used and every variable filled.

    Args:
        model: one of this package.
        tensors: by the names of the table.
        table: of their names.
        source: where the tensors are from, for messages.
        allow: names, or patterns such as `"cls.*"`, of tensors that may be unused and
            of those that may be missing.
        shown: a name of the table -> the name in the file, for messages.

    Raises:
        ValueError: naming all tensors that are not used and all that are missing; all
            those of another shape, with both shapes; or those that are no floats.
    """
    allow = [*allow, *_ALWAYS_UNUSED, *([] if uses_pooler(model) else POOLER)]

    def strangers(names: Iterable[str]) -> list[str]:
        return [shown(n) for n in names if not _is_among({n, shown(n)}, allow)]

    found = places(model, table)
    unused = strangers(name for name in tensors if name not in found)
    missing = strangers(name for name in found if name not in tensors)
    if unused or missing:
        raise ValueError(
            f"{source} does not fit the model. Received: "
            f"{_listed('tensors that have no place', unused)}"
            f"{'; ' if unused and missing else ''}"
            f"{_listed('no values for', missing)}; allowed: every tensor used and "
            "every variable filled, but for names given as allow."
        )
    arrays = {v.path: np.array(v.numpy()) for v in model.weights}
    num_heads = model.backbone.num_heads
    targets = {
        name: view(arrays[place.path], place.part, num_heads)
        for name, place in found.items()
        if name in tensors
    }
    _check(tensors, targets, source)
    for name, target in targets.items():
        target[...] = tensors[name]
    for variable in model.weights:
        variable.assign(arrays[variable.path])


def tensors_of(model: keras.Model, table: Sequence[Row]) -> dict[str, np.ndarray]:
    """Returns the weights of a model by their names, and in their shapes."""
    arrays = {variable.path: np.array(variable.numpy()) for variable in model.weights}
    num_heads = model.backbone.num_heads
    return {
        name: view(arrays[place.path], place.part, num_heads)
        for name, place in places(model, table).items()
    }


def uses_pooler(model: keras.Model) -> bool:
    """Whether an output of the model depends on the pooled vector."""
    names = {path.split("/")[0] for path in (v.path for v in model.weights)}
    return bool(names & {"next_sentence", "classifier", "regressor"})


def _check(tensors: Mapping, targets: Mapping, source: str) -> None:
    shapes = [
        f"{name} {tensors[name].shape} for {target.shape}"
        for name, target in targets.items()
        if tensors[name].shape != target.shape
    ]
    if shapes:
        raise ValueError(
            f"{source} holds tensors of other shapes. Received: {', '.join(shapes)}; "
            "allowed: equal shapes."
        )
    # Of bfloat16 NumPy knows only that it is none of its own.
    types = [
        f"{name} {tensors[name].dtype}"
        for name in targets
        if tensors[name].dtype.kind not in "fV"
    ]
    if types:
        raise ValueError(
            f"{source} holds tensors that are no weights. Received: "
            f"{', '.join(types)}; allowed: floating-point numbers."
        )


def _listed(what: str, names: list[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else ""


def _is_among(names: set[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
