"""Makes `tests/pretraining/published_weights.npz` by asking Hugging Face's BERT.

    pip install torch==2.13.0 transformers==5.24.0
    pip install --no-deps rxnfp==0.1.0
    python tools/make_pretraining_fixture.py [--out FILE]

It imports nothing of this package, so it can have an environment of its own. The PyPI
package rxnfp 0.1.0 holds a published `BertForPreTraining`, both heads and all: 12
layers, 256 wide, 591 tokens. Stored are a small batch, under the names of
`bert_keras/features.py`, and what that model makes of it without dropout: the logits,
the loss and, of the gradient of each parameter, the norm and some values.

It computes in float64 and stores float32, so that the numbers are the model's and not
those of the machine that made them: in float32 they differ from these by the printed
amount.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
from pathlib import Path

import numpy as np
import torch
import transformers

PACKAGE = "rxnfp"
FOLDER = "models/transformers/bert_pretrained"
WEIGHTS = "pytorch_model.bin"
LENGTH = 24
PREDICTIONS = 5
# Tokens of texts A and B, and how many pieces of the row are predicted: one row is
# full, two have padding, and two leave some of the places for predictions unused.
ROWS = ((11, 10, 5), (9, 5, 4), (3, 5, 2))
NEXT_SENTENCE = (1, 0, 1)  # 1: B follows A
VALUES = 256  # about as many of each gradient are stored
IGNORED = -100  # the label of what Hugging Face does not count


def published_folder() -> Path:
    """Returns where the weights lie, without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    return Path(spec.submodule_search_locations[0]) / FOLDER


def make_batch(vocabulary: list[str]) -> dict[str, np.ndarray]:
    """Returns rows of drawn pieces, some of them masked, as a feature dictionary."""
    random = np.random.default_rng(2018)
    pad, cls, sep, mask = map(vocabulary.index, ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
    rows, slots = (len(ROWS), LENGTH), (len(ROWS), PREDICTIONS)
    batch = {
        "token_ids": np.full(rows, pad, np.int32),
        "segment_ids": np.zeros(rows, np.int32),
        "padding_mask": np.zeros(rows, np.int32),
        "mask_positions": np.zeros(slots, np.int32),
        "mask_ids": np.zeros(slots, np.int32),
        "mask_weights": np.zeros(slots, np.float32),
        "next_sentence": np.array(NEXT_SENTENCE, np.int32),
    }
    for row, (first, second, predictions) in enumerate(ROWS):
        ids = random.integers(mask + 1, len(vocabulary), first + second + 3)
        seps = [first + 1, first + second + 2]
        ids[0], ids[seps] = cls, sep
        pieces = np.setdiff1d(np.arange(1, len(ids)), seps)
        positions = np.sort(random.choice(pieces, predictions, replace=False))
        batch["mask_positions"][row, :predictions] = positions
        batch["mask_ids"][row, :predictions] = ids[positions]
        batch["mask_weights"][row, :predictions] = 1
        ids[positions[:-1]] = mask  # the last stays as it is, as some do in training
        batch["token_ids"][row, : len(ids)] = ids
        batch["segment_ids"][row, first + 2 : len(ids)] = 1
        batch["padding_mask"][row, : len(ids)] = 1
    return batch


def load(folder: Path, dtype: torch.dtype) -> transformers.BertForPreTraining:
    """Returns the published model without dropout; no weight of it may be missing."""
    model, report = transformers.BertForPreTraining.from_pretrained(
        folder, attn_implementation="eager", dtype=dtype, output_loading_info=True
    )
    faults = {name: found for name, found in report.items() if found}
    if faults:
        raise ValueError(f"The file does not fit the model. Received: {faults}.")
    return model.eval()


def answers(model, batch: dict[str, np.ndarray]) -> dict:
    """Returns the logits, the loss, and the gradient of each parameter by its name."""
    tensors = {name: torch.tensor(a).long() for name, a in batch.items()}
    rows = torch.arange(len(ROWS))[:, None]
    positions, is_used = tensors["mask_positions"], tensors["mask_weights"] > 0
    labels = torch.full_like(tensors["token_ids"], IGNORED)
    used_rows = rows.expand_as(positions)[is_used]
    labels[used_rows, positions[is_used]] = tensors["mask_ids"][is_used]
    outputs = model(
        input_ids=tensors["token_ids"],
        token_type_ids=tensors["segment_ids"],
        attention_mask=tensors["padding_mask"],
        labels=labels,
        next_sentence_label=1 - tensors["next_sentence"],  # there, 0: B follows A
    )
    outputs.loss.backward()
    return {
        "masked_lm_logits": outputs.prediction_logits[rows, positions].detach().numpy(),
        "next_sentence_logits": outputs.seq_relationship_logits.detach().numpy(),
        "loss": outputs.loss.detach().numpy(),
        "gradients": {n: p.grad.numpy() for n, p in model.named_parameters()},
    }


def sampled(gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns norms and values of gradients, each flattened, one behind the other.

    Those of a gradient are `flat[:end:stride]`. Behind `end` there are only zeros, as
    in the rows of positions that no row of the batch has. The stride is odd: a power of
    two, as the rows' lengths are, would stay in few columns.
    """
    flats = [gradient.ravel() for gradient in gradients.values()]
    ends = [int(np.flatnonzero(flat)[-1]) + 1 for flat in flats]
    strides = [end // VALUES | 1 for end in ends]
    values = [f[:e:s] for f, e, s in zip(flats, ends, strides, strict=True)]
    return {
        "gradient_names": np.array(list(gradients)),
        "gradient_norms": np.array([np.linalg.norm(flat) for flat in flats]),
        "gradient_ends": np.array(ends, np.int32),
        "gradient_strides": np.array(strides, np.int32),
        "gradient_values": np.concatenate(values).astype(np.float32),
    }


def print_differences(exact: dict, rounded: dict) -> None:
    """Prints how far float32 is from float64: what no comparison can be finer than."""
    for name in ("masked_lm_logits", "next_sentence_logits", "loss"):
        print(f"{name} in float32: {np.abs(exact[name] - rounded[name]).max():.1e} off")
    shares = {
        name: np.abs(gradient - rounded["gradients"][name]).max()
        / np.abs(gradient).max()
        for name, gradient in exact["gradients"].items()
        if not name.endswith("key.bias")  # zero but for rounding
    }
    worst = max(shares, key=shares.get)
    print(f"gradients: at most {shares[worst]:.1e} of the largest value, in {worst}")


def main() -> None:
    tests = Path(__file__).parents[1] / "tests"
    default = tests / "pretraining/published_weights.npz"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=default)
    out = parser.parse_args().out

    folder = published_folder()
    batch = make_batch((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    made = answers(load(folder, torch.float64), batch)
    print_differences(made, answers(load(folder, torch.float32), batch))
    gradients = made.pop("gradients")
    origin = {
        "package": PACKAGE,
        "version": importlib.metadata.version(PACKAGE),
        "file": f"{FOLDER}/{WEIGHTS}",
        "sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    np.savez_compressed(
        out,
        origin=np.array(json.dumps(origin)),
        **batch,
        **{name: array.astype(np.float32) for name, array in made.items()},
        **sampled(gradients),
    )
    print(f"{out}: {out.stat().st_size:,} bytes, {len(gradients)} gradients")


if __name__ == "__main__":
    main()
