"""Files -> lines and blocks."""

import gzip

import pytest

from bert_keras.text import lines
from bert_keras.text.lines import Span, read_blocks, read_lines, spans


def test_lines_end_at_line_feeds_only(tmp_path):
    text = "Caf\u00e9 one.\u2028Still.\r\n\nTwo.\n".encode()
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text))
    for name in ("a.txt", "b.txt.gz"):
        found = list(read_lines(tmp_path / name))
        assert found == ["Café one.\u2028Still.", "", "Two."]


def write_wrong_files(folder):
    """Writes what is no text; returns each name and what the error must say."""
    (folder / "latin.txt").write_bytes(b"fine\nna\xefve\n")
    (folder / "latin.gz").write_bytes(gzip.compress(b"fine\nna\xefve\n"))
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(1000)))
    (folder / "cut.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "mangled.gz").write_bytes(whole[:20] + b"\xff" * 20 + whole[40:])
    (folder / "plain.gz").write_bytes(b"plain")
    return {
        "latin.txt": "latin.txt is not UTF-8.*0xef on line 2",
        "latin.gz": "latin.gz is not UTF-8.*0xef on line 2",
        "cut.gz": "cut.gz is not a whole gzip file",
        "mangled.gz": "mangled.gz is not a whole gzip file",
        "plain.gz": "plain.gz is not a whole gzip file",
    }


def test_bad_files_are_named_however_they_are_read(tmp_path):
    for name, said in write_wrong_files(tmp_path).items():
        with pytest.raises(ValueError, match=said):
            list(read_lines(tmp_path / name))
        with pytest.raises(ValueError, match=said):
            for span in spans(tmp_path / name, 4):
                list(read_blocks(span))
    for read in (lambda path: list(read_lines(path)), lambda path: spans(path, 4)):
        with pytest.raises(ValueError, match="the folder"):
            read(tmp_path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "absent.txt")


TEXT = "one two\n\nÄöü 中文中文中文\nlast" + "x" * 30


@pytest.mark.parametrize("end", ["", "\n", "\n\n", " "])
@pytest.mark.parametrize("block", [1, 3, 7, 1000])
def test_spans_and_blocks_are_the_whole_text_whatever_their_size(
    tmp_path, monkeypatch, block, end
):
    monkeypatch.setattr(lines, "BLOCK", block)
    path = tmp_path / "a.txt"
    data = (TEXT + end).encode()
    path.write_bytes(data)
    for size in range(1, len(data) + 2):
        cut = spans(path, size)
        assert [span.start for span in cut] == list(range(0, len(data), size))
        texts = ["".join(text for text, _ in read_blocks(span)) for span in cut]
        assert "".join(texts) == TEXT + end
        filled = [text for text in texts if text]
        assert all(text.endswith(("\n", " ")) for text in filled[:-1])
        read = sum(size for span in cut for _, size in read_blocks(span))
        assert read == len(data)
    for text, _ in read_blocks(Span(path, 0, len(data))):
        assert text in ("", TEXT.split()[-1]) or text.endswith((" ", "\n"))


def test_a_gzipped_file_is_one_span_and_its_stored_bytes_are_told(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    (span,) = spans(path, 4)
    texts, sizes = zip(*read_blocks(span), strict=True)
    assert "".join(texts) == TEXT
    assert sum(sizes) == path.stat().st_size


def test_an_empty_file_has_no_spans(tmp_path):
    (tmp_path / "a.txt").write_text("")
    assert spans(tmp_path / "a.txt", 4) == []
