"""The fast lane: rows of printable ASCII through tensorflow_text, where it is there.

On other text `FastBertTokenizer` gives other ids (it case-folds, and counts bytes), so
all other rows go through `wordpiece`. On these the two are equal under every rule set:
nothing is to be removed, composed or stripped, and a byte is a character.
"""

import importlib.util

import tensorflow as tf

from bert_keras.text.inputs import codepoints_of
from bert_keras.text.tables import compile_tables
from bert_keras.text.tensors import indices
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.wordpiece import wordpiece

ENGINES = (None, "stock", "tf_text")
_PLAIN = r"[\t\n\r -~]*"


def is_installed() -> bool:
    """Says whether tensorflow_text can be imported."""
    return importlib.util.find_spec("tensorflow_text") is not None


def can_take(vocabulary: Vocabulary) -> bool:
    """Says whether the options of a vocabulary leave plain rows to the fast lane."""
    options = vocabulary.options
    has_names = options.names_in_text(vocabulary.special_tokens)
    return not (has_names or options.split_unknown_characters)


def in_tf_data() -> bool:
    """Says whether a function of a tf.data pipeline is being traced.

    Such a graph is run where it was made. Any other may be exported, to where there is
    nothing but stock ops.
    """
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        if getattr(graph, "name", "").startswith("Dataset_"):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


class FastLane:
    """Tokenizes a batch of strings, each row by the fastest engine that is exact.

    Args:
        vocabulary: with options that `can_take` allows.

    Raises:
        ImportError: tensorflow_text is not installed.
    """

    def __init__(self, vocabulary: Vocabulary):
        import tensorflow_text  # not on every platform, and not needed without this

        self._vocabulary = vocabulary
        self._fast = tensorflow_text.FastBertTokenizer(
            # It wants every token once; none with a space in it ever matches.
            [token or f" {number}" for number, token in enumerate(vocabulary)],
            max_bytes_per_word=vocabulary.options.max_characters_per_word,
            unknown_token=vocabulary.special_tokens.unk,
            token_out_type=tf.int32,
            support_detokenization=False,
            lower_case_nfd_strip_accents=vocabulary.options.lowercase,
        )

    def __call__(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids, flat, and their row splits, for strings `[batch]`."""

        def mixed():
            is_plain = tf.strings.regex_full_match(texts, _PLAIN)
            plain, other = indices(is_plain), indices(~is_plain)
            rows = tf.concat(
                [
                    _ragged(*self._plain(tf.gather(texts, plain))),
                    _ragged(*self._other(tf.gather(texts, other))),
                ],
                axis=0,
            )
            rows = tf.gather(rows, tf.argsort(tf.concat([plain, other], axis=0)))
            return rows.values, tf.cast(rows.row_splits, tf.int32)

        joined = tf.strings.reduce_join(texts)
        is_plain = tf.strings.regex_full_match(joined, _PLAIN)
        return tf.cond(is_plain, lambda: self._plain(texts), mixed)

    def _plain(self, texts):
        rows = self._fast.tokenize(texts)
        return rows.values, tf.cast(rows.row_splits, tf.int32)

    def _other(self, texts):
        text = codepoints_of(texts)
        tables = compile_tables(self._vocabulary)
        pieces = wordpiece(text.codepoints, text.row_splits, tables)
        return pieces.ids, pieces.row_splits


def _ragged(values, row_splits) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
