"""The fast lane: rows of printable ASCII through tensorflow_text, where it is there.

On other text `FastBertTokenizer` gives other ids (it case-folds, and counts bytes), so
all other rows go through `wordpiece`. On these the two are equal under every rule set:
nothing is to be removed, composed or stripped, and a byte is a character.
"""

import functools
import importlib.util
import re

import tensorflow as tf

from bert_keras.text.inputs import codepoints_of
from bert_keras.text.tables import compile_tables
from bert_keras.text.tensors import indices
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.text.wordpiece import wordpiece

_PLAIN = r"[\t\n\r -~]*"
_SPACE = re.compile(r"\s")


def check_engine(engine: str | None) -> None:
    """Refuses an engine that is not known, or not installed."""
    if engine not in (None, "stock", "tf_text"):
        raise ValueError(
            f"Received: engine={engine!r}; allowed: None, 'stock', 'tf_text'."
        )
    if engine == "tf_text" and not is_installed():
        raise ValueError(
            "Received: engine='tf_text', but tensorflow_text is not installed; "
            "allowed: None or 'stock', with the same ids."
        )


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


@functools.lru_cache(maxsize=4)
def _fast_tokenizer(vocabulary: Vocabulary):
    import tensorflow_text  # not on every platform, and not needed without this

    with tf.init_scope():  # it takes a second to build, and serves every graph
        return tensorflow_text.FastBertTokenizer(
            [
                # It wants every token once, and would match spaces, were they tokens.
                f"\ue000{number}" if not token or _SPACE.search(token) else token
                for number, token in enumerate(vocabulary)
            ],
            max_bytes_per_word=vocabulary.options.max_characters_per_word,
            unknown_token=vocabulary.special_tokens.unk,
            token_out_type=tf.int32,
            support_detokenization=False,
            lower_case_nfd_strip_accents=vocabulary.options.lowercase,
        )


def fast_pieces(
    texts: tf.Tensor, vocabulary: Vocabulary
) -> tuple[tf.Tensor, tf.Tensor]:
    """Tokenizes a batch of strings, each row by the fastest engine that is exact.

    Args:
        texts: strings `[batch]`.
        vocabulary: with options that `can_take` allows.

    Returns:
        ids, int32 `[tokens]`, and their row splits, int32 `[batch + 1]`.
    """
    fast = _fast_tokenizer(vocabulary)

    def all_plain():
        rows = fast.tokenize(texts)
        return rows.values, tf.cast(rows.row_splits, tf.int32)

    def mixed():
        is_plain = tf.strings.regex_full_match(texts, _PLAIN)
        plain, other = indices(is_plain), indices(~is_plain)
        text = codepoints_of(tf.gather(texts, other))
        pieces = wordpiece(text.codepoints, text.row_splits, compile_tables(vocabulary))
        others = tf.RaggedTensor.from_row_splits(
            pieces.ids, pieces.row_splits, validate=False
        )
        fasts = fast.tokenize(tf.gather(texts, plain))
        fasts = fasts.with_row_splits_dtype(tf.int32)
        rows = tf.concat([fasts, others], axis=0)
        rows = tf.gather(rows, tf.argsort(tf.concat([plain, other], axis=0)))
        return rows.values, rows.row_splits

    joined = tf.strings.reduce_join(texts)
    return tf.cond(tf.strings.regex_full_match(joined, _PLAIN), all_plain, mixed)
