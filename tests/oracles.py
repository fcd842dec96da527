"""What the tests compare with: peers, called here and nowhere else, and their data."""

import functools
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bert_keras import Vocabulary

DATA = Path(__file__).parents[2] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the shared test data, ../shared/data"
)

# The small vocabulary of the public reports: ids 0 to 11.
SMALL = "[PAD] [UNK] [CLS] [SEP] [MASK] the qu ##ick br ##own fox .".split()

# Every codepoint that can stand in a string.
CODEPOINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def vocabulary_path(name: str) -> Path:
    """Returns the path of a published vocabulary, such as "uncased"."""
    return DATA / "vocab" / f"bert-base-{name}-vocab.txt"


@functools.cache
def reference_tokenizer(
    vocabulary: Vocabulary,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_on_cjk: bool = True,
    normalization: str | None = None,
    never_split: tuple[str, ...] = (),
    limit: int = 100,
):
    """Returns Hugging Face's BERT tokenizer, with no special tokens added."""
    tokenizers = pytest.importorskip("tokenizers")
    ids = {token: number for number, token in enumerate(vocabulary) if token}
    model = tokenizers.models.WordPiece(
        ids, unk_token="[UNK]", max_input_chars_per_word=limit
    )
    reference = tokenizers.Tokenizer(model)
    reference.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=split_on_cjk,
        strip_accents=lowercase if strip_accents is None else strip_accents,
        lowercase=lowercase,
    )
    if normalization == "NFC":
        reference.normalizer = tokenizers.normalizers.Sequence(
            [tokenizers.normalizers.NFC(), reference.normalizer]
        )
    reference.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    for word in never_split:
        # It looks at both sides of a word; ours only where the word's own end is one.
        added = tokenizers.AddedToken(
            word, normalized=False, single_word=word[0].isalnum() and word[-1].isalnum()
        )
        reference.add_tokens([added])
    return reference


def shared_lines() -> Iterator[str]:
    """Yields every line of prose and SST-2, every paragraph and question of XQuAD."""
    for path in sorted((DATA / "prose").glob("*.gz")):
        yield from gzip.decompress(path.read_bytes()).decode().split("\n")
    for path in sorted((DATA / "labelled").glob("sst2.*")):
        yield from path.read_bytes().decode().split("\n")
    for path in sorted((DATA / "multilingual").glob("*.json")):
        for article in json.loads(path.read_bytes())["data"]:
            for paragraph in article["paragraphs"]:
                yield paragraph["context"]
                yield from (question["question"] for question in paragraph["qas"])
