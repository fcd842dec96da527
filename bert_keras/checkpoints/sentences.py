"""What sentence-transformers keeps beside a Hugging Face folder: how it pools."""

from pathlib import Path
from typing import NamedTuple

from bert_keras.checkpoints.huggingface_config import refuse
from bert_keras.files import read_json, write_json
from bert_keras.tasks.embedder import BertEmbedder

MODULES = "modules.json"
_POOLING = "1_Pooling"
_CONFIG = "config.json"
_FIELD = "pooling_mode_"

_POOLINGS = {"mean_tokens": "mean", "cls_token": "cls"}
_MODULES = ("Transformer", "Pooling", "Normalize")


class Pooling(NamedTuple):
    """How the vector of a text is made.

    Attributes:
        encoder: the folder of the encoder.
        arguments: of `BertEmbedder`.
    """

    encoder: Path
    arguments: dict


def read_pooling(folder: Path) -> Pooling | None:
    """Reads `modules.json`; None where there is none.

    Raises:
        ValueError: naming a module, or a pooling, that `BertEmbedder` does not have.
    """
    path = folder / MODULES
    if not path.exists():
        return None
    places = {}
    for module in read_json(path):
        name = module["type"].rsplit(".", 1)[-1]
        if name not in _MODULES or name in places:
            refuse(path, "type", module["type"], ", ".join(_MODULES))
        places[name] = folder / module["path"]
    if list(places) not in ([*_MODULES], [*_MODULES[:2]]):
        refuse(path, "modules", ", ".join(places), ", ".join(_MODULES))
    pooling = _pooling(places["Pooling"] / _CONFIG)
    arguments = {"pooling": pooling, "normalize": "Normalize" in places}
    return Pooling(places["Transformer"], arguments)


def write_pooling(model: BertEmbedder, folder: Path) -> None:
    """Writes `modules.json` and the folders of the modules."""
    modules = _MODULES if model.arguments["normalize"] else _MODULES[:2]
    places = ["", _POOLING, "2_Normalize"]
    described = [
        {
            "idx": number,
            "name": str(number),
            "path": places[number],
            "type": f"sentence_transformers.models.{name}",
        }
        for number, name in enumerate(modules)
    ]
    write_json(described, folder / MODULES)
    for place in places[1 : len(modules)]:
        (folder / place).mkdir()
    modes = {
        f"{_FIELD}{theirs}": ours == model.arguments["pooling"]
        for theirs, ours in _POOLINGS.items()
    }
    fields = {"word_embedding_dimension": model.backbone.hidden_dim, **modes}
    write_json(fields, folder / _POOLING / _CONFIG)
    length = model.backbone.max_sequence_length
    if model.preprocessor is not None:
        length = model.preprocessor.sequence_length
    sentence = {"max_seq_length": length, "do_lower_case": False}
    write_json(sentence, folder / "sentence_bert_config.json")


def _pooling(path: Path) -> str:
    fields = read_json(path)
    modes = [
        name.removeprefix(_FIELD)
        for name, is_on in fields.items()
        if name.startswith(_FIELD) and is_on
    ]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        refuse(path, "pooling", ", ".join(modes), *_POOLINGS)
    return _POOLINGS[modes[0]]
