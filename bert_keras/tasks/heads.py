"""What the heads of tasks share."""

from collections.abc import Sequence

import keras

from bert_keras.embeddings import initial_weights
from bert_keras.encoder.backbone import BertBackbone


def head_layer(backbone: BertBackbone, outputs: int, name: str) -> keras.layers.Dense:
    """Returns a new linear layer behind an encoder."""
    return keras.layers.Dense(
        outputs,
        kernel_initializer=initial_weights(backbone.initializer_range),
        dtype=backbone.dtype_policy,
        name=name,
    )


def check_labels(labels: Sequence[str], least: int = 2) -> tuple[str, ...]:
    """Returns the names of classes; a `ValueError` says what is wrong with them."""
    is_list = isinstance(labels, Sequence) and not isinstance(labels, str)
    names = tuple(labels) if is_list else ()
    are_names = all(isinstance(name, str) and name for name in names)
    if len(names) < least or len(set(names)) < len(names) or not are_names:
        raise ValueError(
            f"Received: labels={labels!r}; allowed: a list of at least {least} names, "
            "each once."
        )
    return names
