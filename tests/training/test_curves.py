"""What a run recorded, and its picture."""

import pytest

from bert_keras.training.curves import plot_curves
from bert_keras.training.progress import read_records


def test_half_a_line_is_no_record(tmp_path):
    assert read_records(tmp_path) == []
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    assert read_records(tmp_path) == [{"step": 1, "loss": 2.0}]


def test_curves(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 1, "loss": 2.0, "tokens_per_second": 5}\n'
        '{"step": 1, "held_out_loss": 3.0}\n'
        '{"step": 2, "loss": 1.5, "masked_lm_accuracy": 0.5}\n'
    )
    plot_curves(tmp_path, tmp_path / "curves.svg")
    picture = (tmp_path / "curves.svg").read_text()
    assert picture.count('id="axes_') == 2  # loss, accuracy
    plot_curves(tmp_path, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_without_records_there_is_nothing_to_plot(tmp_path):
    with pytest.raises(ValueError, match="no records"):
        plot_curves(tmp_path, tmp_path / "curves.png")
    assert list(tmp_path.iterdir()) == []
