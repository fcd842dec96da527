"""Options of a run: dataclasses whose fields know what they allow."""

import dataclasses

PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}

_KINDS = {
    int: "an integer",
    float: "a number",
    bool: "True or False",
    str: "a name",
}


def option(default, says: str, *, least=None, most=None, below=None, choices=None):
    """A field that knows what it allows."""
    allowed = {"least": least, "most": most, "below": below, "choices": choices}
    return dataclasses.field(default=default, metadata={"says": says, **allowed})


class Options:
    """What a dataclass of options inherits: it refuses values that are not allowed."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            self._check(field)

    def _check(self, field: dataclasses.Field) -> None:
        value, rule = getattr(self, field.name), field.metadata
        kinds = (int, float) if field.type is float else field.type
        is_allowed = isinstance(value, kinds)
        is_allowed &= isinstance(value, bool) == (field.type is bool)
        words = [] if rule["choices"] else [_KINDS[field.type]]
        for word, limit, holds in (
            ("", rule["choices"], lambda: value in rule["choices"]),
            ("at least ", rule["least"], lambda: value >= rule["least"]),
            ("at most ", rule["most"], lambda: value <= rule["most"]),
            ("below ", rule["below"], lambda: value < rule["below"]),
        ):
            if limit is not None:
                shown = ", ".join(limit) if rule["choices"] else limit
                words.append(f"{word}{shown}")
                is_allowed = is_allowed and holds()
        if not is_allowed:
            raise ValueError(
                f"Received: {field.name}={value!r}; allowed: {', '.join(words)}."
            )
