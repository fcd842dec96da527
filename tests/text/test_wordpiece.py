"""Ids equal to those of Hugging Face `tokenizers`: every line, every codepoint."""

import pytest
from oracles import (
    CODEPOINTS,
    SMALL,
    needs_data,
    reference_tokenizer,
    shared_lines,
    vocabulary_path,
)

from bert_keras import Vocabulary, WordPieceTokenizer

# (vocabulary, lower-casing)
PUBLISHED = [("uncased", True), ("multilingual-cased", False)]


def assert_equal_ids(texts, vocabulary, lowercase):
    """Compares in batches; ids of a row are those before the padding."""
    ours = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    reference = reference_tokenizer(vocabulary, lowercase)
    different = []
    for start in range(0, len(texts), 1000):
        batch = texts[start : start + 1000]
        answer = ours(batch)
        rows = zip(answer["token_ids"].numpy(), answer["counts"].numpy(), strict=True)
        expected = reference.encode_batch(batch, add_special_tokens=False)
        for text, (ids, count), encoding in zip(batch, rows, expected, strict=True):
            if ids[:count].tolist() != encoding.ids:
                different.append((text, ids[:count].tolist(), encoding.ids))
    assert not different, f"{len(different)} lines differ, such as {different[0]}"


@needs_data
@pytest.mark.parametrize(("name", "lowercase"), PUBLISHED)
def test_every_line_of_the_shared_data(name, lowercase):
    texts = list(shared_lines())
    assert len(texts) > 100_000
    assert_equal_ids(texts, Vocabulary.read(vocabulary_path(name)), lowercase)


@needs_data
@pytest.mark.parametrize(("name", "lowercase"), PUBLISHED)
def test_every_codepoint_inside_a_word(name, lowercase):
    texts = [f"x{chr(codepoint)}y" for codepoint in CODEPOINTS]
    assert_equal_ids(texts, Vocabulary.read(vocabulary_path(name)), lowercase)


def test_random_words_of_a_small_vocabulary(random):
    """Backtracking, words without pieces, and words at the limit of 100 characters."""
    pieces = ["a", "b", "ab", "##a", "##b", "##ab", "##bab", "abba", "##aaaaaaaa"]
    vocabulary = Vocabulary([*SMALL, *pieces])
    texts = []
    for _ in range(3000):
        lengths = random.choice([1, 2, 3, 5, 8, 13, 99, 100, 101], 4)
        words = ("".join(random.choice(list("aaabbbc"), n)) for n in lengths)
        texts.append(random.choice([" ", "-", "\t", ""]).join(words))
    texts += ["a" * n for n in range(95, 105)]
    assert_equal_ids(texts, vocabulary, lowercase=True)
