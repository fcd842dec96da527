"""How good answers are: figures by hand, and by scikit-learn and SciPy."""

import builtins
import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from bert_keras.tasks.metrics import (
    classification_metrics,
    confusion_matrix,
    plot_confusion,
    regression_metrics,
    report,
    span_metrics,
    tagging_metrics,
)
from bert_keras.tasks.squad import Answer, Question

NAMES = ["bad", "fair", "good"]
LABELS = ["bad", "bad", "bad", "fair", "good", "good"]
FOUND = ["bad", "bad", "fair", "fair", "bad", "good"]


def test_classification_by_hand():
    """Four of six are right. Precision and recall of bad: 2/3 and 2/3, so F1 2/3; of
    fair: 1/2 and 1, so 2/3; of good: 1 and 1/2, so 2/3.

    Matthews, after Gorodkin: (c s - sum p t) / sqrt((s² - sum p²)(s² - sum t²)) with
    c = 4 right of s = 6, p = 3, 2, 1 predicted and t = 3, 1, 2 there: (24 - 13) / (36 -
    14) = 1/2.
    """
    found = classification_metrics(LABELS, FOUND, NAMES)
    assert found == pytest.approx(
        {"accuracy": 4 / 6, "macro_f1": 2 / 3, "matthews": 1 / 2}
    )
    assert confusion_matrix(LABELS, FOUND, NAMES).tolist() == [
        [2, 1, 0],
        [0, 1, 0],
        [1, 0, 1],
    ]
    rows = report(LABELS, FOUND, NAMES)
    figures = [2 / 3, 2 / 3, 2 / 3, 3], [1 / 2, 1, 2 / 3, 1], [1, 1 / 2, 2 / 3, 2]
    assert list(rows) == NAMES
    for row, expected in zip(rows.values(), figures, strict=True):
        assert list(row) == ["precision", "recall", "f1", "support"]
        assert list(row.values()) == pytest.approx(expected)


def test_classes_may_be_given_by_number():
    numbers = np.array([0, 0, 0, 1, 2, 2]), [0, 0, 1, 1, 0, 2]
    for measure in (classification_metrics, report):
        assert measure(*numbers, NAMES) == measure(LABELS, FOUND, NAMES)
    found = confusion_matrix(np.array(LABELS), numbers[1], NAMES)
    assert found.tolist() == confusion_matrix(LABELS, FOUND, NAMES).tolist()


def test_classes_as_scikit_learn_counts_them(random):
    names = [f"class {number}" for number in range(12)]
    labels = random.integers(0, 10, 500)  # two classes stand nowhere
    found = np.where(random.random(500) < 0.6, labels, random.integers(0, 10, 500))
    matrix = confusion_matrix(labels, found, names)
    assert matrix.sum() == 500
    assert np.array_equal(matrix[:10, :10], metrics.confusion_matrix(labels, found))
    expected = metrics.classification_report(
        labels, found, labels=range(12), output_dict=True, zero_division=0
    )
    for number, row in enumerate(report(labels, found, names).values()):
        for name, value in row.items():
            name = {"f1": "f1-score"}.get(name, name)
            assert value == pytest.approx(expected[str(number)][name])
    shares = classification_metrics(labels, found, names)
    assert shares["accuracy"] == np.mean(labels == found)
    assert shares["matthews"] == metrics.matthews_corrcoef(labels, found)
    # Of the classes that do stand somewhere.
    rows = list(report(labels, found, names).values())[:10]
    assert shares["macro_f1"] == pytest.approx(np.mean([row["f1"] for row in rows]))


@pytest.mark.parametrize(
    ("labels", "found", "accuracy", "macro_f1"),
    [("aa", "aa", 1, 1), ("ab", "aa", 1 / 2, 1 / 3), ("aa", "bb", 0, 0)],
)
def test_one_class_only_has_no_correlation(labels, found, accuracy, macro_f1):
    """Of "ab" and "aa", F1 is 2/3 for a and 0 for b."""
    expected = {"accuracy": accuracy, "macro_f1": macro_f1, "matthews": 0}
    shares = classification_metrics(list(labels), list(found), ["a", "b", "c"])
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("measure", [classification_metrics, confusion_matrix, report])
def test_classes_that_do_not_fit(measure):
    known = r"allowed: 'bad', 'fair', 'good', 0, 1, 2\."
    with pytest.raises(ValueError, match=f"is not known. Received: 'worst'; {known}"):
        measure(LABELS, [*FOUND[1:], "worst"], NAMES)
    with pytest.raises(ValueError, match=f"is not known. Received: -1; {known}"):
        measure([-1], [0], NAMES)
    for labels, said in ((LABELS, "1 for 6"), ([], "1 for 0")):
        with pytest.raises(ValueError, match=f"do not fit. Received: {said} in all"):
            measure(labels, ["bad"], NAMES)
    with pytest.raises(ValueError, match="Received: 0 for 0 in all; allowed: as many"):
        measure([], [], NAMES)


def test_regression_by_hand():
    """The deviations of 1, 2, 3, 6 are -2, -1, 0, 3 and those of 2, 1, 3, 10 are -2,
    -3, -1, 6: the products sum to 25, the squares to 14 and 50. Two of four ranks are
    exchanged: 1 - 6 * 2 / (4 * 15) = 0.8. The errors are 1, -1, 0, 4.
    """
    expected = {
        "pearson": 25 / math.sqrt(14 * 50),
        "spearman": 0.8,
        "mean_squared_error": 18 / 4,
    }
    found = regression_metrics([1, 2, 3, 6], np.float32([2, 1, 3, 10]))
    assert found == pytest.approx(expected)
    assert all(type(value) is float for value in found.values())


def test_regression_as_scipy_counts_it(random):
    values = random.integers(0, 6, 200) / 2  # with many ties
    predictions = values + random.normal(size=200)
    ranks = stats.rankdata(values), stats.rankdata(predictions)
    assert regression_metrics(values, predictions) == pytest.approx(
        {
            "pearson": np.corrcoef(values, predictions)[0, 1],
            "spearman": np.corrcoef(*ranks)[0, 1],
            "mean_squared_error": np.mean((values - predictions) ** 2),
        }
    )


@pytest.mark.parametrize(
    ("values", "predictions", "error"),
    [([1, 2, 3], [2, 2, 2], 2 / 3), ([2, 2], [1, 3], 1), ([1], [3], 4)],
)
def test_a_constant_has_no_correlation(values, predictions, error):
    found = regression_metrics(values, predictions)
    assert math.isnan(found["pearson"])
    assert math.isnan(found["spearman"])
    assert found["mean_squared_error"] == pytest.approx(error)


def test_numbers_that_do_not_fit():
    with pytest.raises(ValueError, match="Received: 1 for 2 in all; allowed: as many"):
        regression_metrics([1, 2], [1])
    with pytest.raises(
        ValueError, match="predictions are not all .* Received: nan; al"
    ):
        regression_metrics([1, 2], [1, math.nan])
    with pytest.raises(
        ValueError, match="The values are not all .* Received: inf; allo"
    ):
        regression_metrics([1, math.inf], [1, 2])


def test_tagging_by_hand():
    """Entities there: x 0-2, y 3-4 | x 0-1, x 1-2. Found: x 0-2 | x 0-2, y 2-3; right
    is one of three found and of four there. Words: 3 of 4 and 1 of 3.
    """
    tags = [["B-x", "I-x", "O", "B-y"], ["B-x", "B-x", "O"]]
    found = [["B-x", "I-x", "O", "O"], ["B-x", "I-x", "B-y"]]
    assert tagging_metrics(tags, found) == pytest.approx(
        {
            "entity_f1": 2 / 7,
            "entity_precision": 1 / 3,
            "entity_recall": 1 / 4,
            "word_accuracy": 4 / 7,
        }
    )


def test_the_same_entities_by_other_tags_are_right():
    found = tagging_metrics([["B-x", "I-x", "B-y"]], [("I-x", "E-x", "S-y")])
    assert found["entity_f1"] == 1
    assert found["word_accuracy"] == 0


def test_the_label_and_the_words_of_an_entity_must_be_right():
    tags = [["B-x", "I-x", "O"], ["O", "O", "O"]]
    for found in (
        [["B-y", "I-y", "O"], ["O"] * 3],
        [["B-x", "I-x", "I-x"], ["O"] * 3],
        [["B-x", "O", "O"], ["O"] * 3],
        [["O"] * 3, ["B-x", "I-x", "O"]],  # in another sentence
    ):
        assert tagging_metrics(tags, found)["entity_f1"] == 0


def test_without_entities_shares_are_nought():
    found = tagging_metrics([["O", "O"]], [["O", "O"]])
    assert list(found.values()) == [0, 0, 0, 1]


def test_tags_that_do_not_fit():
    with pytest.raises(ValueError, match="Received: 1 for 2 in all; allowed: as many"):
        tagging_metrics([["O"], ["O"]], [["O"]])
    with pytest.raises(
        ValueError, match="Received: 2 for 1 in sentence 2; allowed: as"
    ):
        tagging_metrics([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="Received: 0 for 0 in all; allowed: as many"):
        tagging_metrics([], [])


def question(*texts, name="q"):
    answers = tuple(Answer(text, 0) for text in texts)
    return Question(name, "?", "context", answers, not answers)


@pytest.mark.parametrize(
    ("right", "answer", "exact", "f1"),
    [
        (["The Panthers' defense"], "panthers defense!", 1, 1),
        (["308"], " 308. ", 1, 1),
        (["a  theatre,\nan area"], "theatre area", 1, 1),
        (["e-mail"], "email", 1, 1),
        # Words 2 and 3, one the same: 2 * 1 / 5.
        (["the black cat"], "cat sat down", 0, 2 / 5),
        # A word that stands twice is the same twice only if it does in both.
        (["no no no"], "no no", 0, 4 / 5),
        (["no"], "no no", 0, 2 / 3),
        # The best of several, each figure by itself.
        (["black cat", "cat", "a dog"], "the dog", 1, 1),
        (["very black cat", "black dog"], "black cat", 0, 4 / 5),
        (["黑豹队"], "黑豹", 0, 0),  # one word, as no space divides it
        (["cat"], "", 0, 0),
        # Without an answer only none is right.
        ([], "", 1, 1),
        ([], "The!", 1, 1),
        ([], "cat", 0, 0),
        (["?"], "", 1, 1),
        (["?", "cat"], "", 0, 0),
    ],
)
def test_spans_by_hand(right, answer, exact, f1):
    found = span_metrics([question(*right)], {"q": answer, "other": "x"})
    assert found == pytest.approx({"exact_match": exact, "f1": f1})


def test_spans_are_shares_of_all_questions():
    questions = [question("cat", name="1"), question("black cat", name="2")]
    questions += [question(name="3"), question(name="4")]
    answers = {"1": "Cat", "2": "cat", "3": "", "4": "dog"}
    found = span_metrics(questions, answers)
    assert found == pytest.approx({"exact_match": 2 / 4, "f1": (1 + 2 / 3 + 1) / 4})


def test_every_question_needs_an_answer():
    with pytest.raises(
        ValueError, match="none for 'q'; allowed: a text, or \"\" if it"
    ):
        span_metrics([question("cat")], {})
    with pytest.raises(ValueError, match="Received: no questions; allowed: some."):
        span_metrics([], {})


def test_the_picture_of_a_confusion(tmp_path):
    pytest.importorskip("matplotlib")
    names = ["bad", r"$\fair$", "good"]  # which is no formula
    plot_confusion([[2, 1, 0], [0, 137, 0], [1, 0, 1]], names, tmp_path / "a.svg")
    picture = (tmp_path / "a.svg").read_text()
    texts = ("137", "bad", names[1])
    assert [picture.count(f"<!-- {text} -->") for text in texts] == [1, 2, 2]
    plot_confusion(
        np.eye(50, dtype=int), [str(n) for n in range(50)], tmp_path / "b.png"
    )
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    with pytest.raises(
        ValueError, match=r"Received: shape \(2, 2\); allowed: \(3, 3\)"
    ):
        plot_confusion(np.eye(2), NAMES, path)
    imported = builtins.__import__

    def without_matplotlib(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(
        ImportError, match=r'needs matplotlib: pip install "bert-keras\['
    ):
        plot_confusion(np.eye(3), NAMES, path)
    assert list(tmp_path.iterdir()) == []
