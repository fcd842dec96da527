"""The named sizes of the encoder.

base and large are those of Devlin et al. 2018; the smaller ones are those of Turc et
al. 2019 ("Well-Read Students Learn Better").
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderSize:
    """What a size name stands for.

    Attributes:
        num_layers: Transformer blocks.
        hidden_dim: width of the residual stream.
        num_heads: attention heads.
        initializer_range: standard deviation of the initial weights. The usual 0.02
            suits a hidden size of 768; narrower models stay on the plateau at which
            every position gets the unigram distribution, since attention starts out
            uniform. The values below base were measured:
            `tools/measure_initial_scale.py`.
    """

    num_layers: int
    hidden_dim: int
    num_heads: int
    initializer_range: float

    @property
    def intermediate_dim(self) -> int:
        """Width of the feed-forward layer: four times the hidden size."""
        return 4 * self.hidden_dim

    def arguments(self) -> dict:
        """Returns the arguments of `BertBackbone` that this size fixes."""
        return {
            **dataclasses.asdict(self),
            "intermediate_dim": self.intermediate_dim,
        }


SIZES = {
    "tiny": EncoderSize(
        num_layers=2, hidden_dim=128, num_heads=2, initializer_range=0.05
    ),
    "mini": EncoderSize(
        num_layers=4, hidden_dim=256, num_heads=4, initializer_range=0.03
    ),
    "small": EncoderSize(
        num_layers=4, hidden_dim=512, num_heads=8, initializer_range=0.03
    ),
    "base": EncoderSize(
        num_layers=12, hidden_dim=768, num_heads=12, initializer_range=0.02
    ),
    "large": EncoderSize(
        num_layers=24, hidden_dim=1024, num_heads=16, initializer_range=0.02
    ),
}


def size_named(name: str) -> EncoderSize:
    """Returns the size of that name; a `ValueError` lists the names."""
    if name not in SIZES:
        raise ValueError(
            f"Unknown size. Received: {name!r}; allowed: {', '.join(SIZES)}."
        )
    return SIZES[name]
