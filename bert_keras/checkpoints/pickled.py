"""Reads a pickle as data: nothing in it is run.

A pickle is a program: it may call any function of any module. So none is given to
`pickle` here. A small machine takes its instructions one by one and knows only those
that build containers, numbers and strings. A name in it stands for nothing but itself,
and a name that is not expected is refused before anything is done with it.
"""

import pickletools
from collections.abc import Callable, Collection, Mapping
from typing import BinaryIO, NamedTuple


class Name(NamedTuple):
    """A name in a pickle, such as `torch.FloatStorage`: text, not what it names."""

    full: str


class PickleReader:
    """Reads one pickle.

    Args:
        calls: what is made where the pickle calls a name, by that name.
        names: further names that may stand in it.
        refer: what is made of a "persistent id", a reference to what lies elsewhere.
    """

    def __init__(
        self,
        calls: Mapping[str, Callable],
        names: Collection[str],
        refer: Callable[[object], object],
    ):
        self._calls = calls
        self._names = (*calls, *names)
        self._refer = refer
        self._stack: list = []
        self._memo: dict[int, object] = {}

    def read(self, file: BinaryIO):
        """Returns the object, and leaves the file behind the pickle.

        Raises:
            ValueError: an instruction, a name or a reference that is not allowed.
            ValueError, IndexError, KeyError, TypeError: a malformed pickle.
        """
        for instruction, argument, _ in pickletools.genops(file):
            name = instruction.name
            if name == "STOP":
                return self._stack.pop()
            if name in _LITERALS:
                self._stack.append(argument)
            elif name in _NEW:
                self._stack.append(_NEW[name]())
            elif name in _STEPS:
                _STEPS[name](self, argument)
            elif name not in ("PROTO", "FRAME"):
                raise ValueError(
                    f"The pickle is more than data. Received: the instruction {name}; "
                    "allowed: those that build containers, numbers and strings."
                )
        raise ValueError("The pickle has no end.")

    def _take(self, count: int) -> list:
        """Takes some values from the top of the stack."""
        start = len(self._stack) - count
        if start < 0:
            raise ValueError("The pickle is malformed: values are missing.")
        taken = self._stack[start:]
        del self._stack[start:]
        return taken

    def _take_group(self) -> list:
        """Takes what lies above the last mark, and the mark."""
        group = []
        while not isinstance(value := self._stack.pop(), _Mark):
            group.append(value)
        return group[::-1]

    def _extend(self, values: list) -> None:
        _check_type(self._stack[-1], list)
        self._stack[-1].extend(values)

    def _update(self, values: list) -> None:
        _check_type(self._stack[-1], dict)
        self._stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def _push_name(self, full: str) -> None:
        if full not in self._names:
            raise ValueError(
                f"The pickle names what is not data. Received: {full}; allowed: "
                f"{', '.join(self._names)}."
            )
        self._stack.append(Name(full))

    def _call(self, _) -> None:
        called, arguments = self._take(2)
        _check_type(called, Name)
        _check_type(arguments, tuple)
        if called.full not in self._calls:
            raise ValueError(
                f"The pickle calls what is not called. Received: {called.full}; "
                f"allowed: {', '.join(self._calls)}."
            )
        self._stack.append(self._calls[called.full](*arguments))

    def _set_state(self, _) -> None:
        """Leaves out what an ordered dictionary is told of itself: module versions."""
        target, _ = self._take(2)
        _check_type(target, dict)
        self._stack.append(target)

    def _follow(self, _) -> None:
        (reference,) = self._take(1)
        self._stack.append(self._refer(reference))

    def _remember(self, number: int | None) -> None:
        place = len(self._memo) if number is None else number
        self._memo[place] = self._stack[-1]

    def _recall(self, number: int) -> None:
        self._stack.append(self._memo[number])


class _Mark:
    """Where in the stack a group begins."""


def _check_type(value, expected: type) -> None:
    if type(value) is not expected:
        raise ValueError(
            f"The pickle does with a value what cannot be done. Received: a "
            f"{type(value).__name__}; allowed: a {expected.__name__.lower()}."
        )


_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
    *("BINSTRING", "SHORT_BINSTRING", "STRING", "BINFLOAT", "FLOAT"),
}

_NEW = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": _Mark,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}

_STEPS: dict[str, Callable] = {
    "TUPLE": lambda reader, _: reader._stack.append(tuple(reader._take_group())),
    "TUPLE1": lambda reader, _: reader._stack.append(tuple(reader._take(1))),
    "TUPLE2": lambda reader, _: reader._stack.append(tuple(reader._take(2))),
    "TUPLE3": lambda reader, _: reader._stack.append(tuple(reader._take(3))),
    "APPEND": lambda reader, _: reader._extend(reader._take(1)),
    "APPENDS": lambda reader, _: reader._extend(reader._take_group()),
    "SETITEM": lambda reader, _: reader._update(reader._take(2)),
    "SETITEMS": lambda reader, _: reader._update(reader._take_group()),
    "GLOBAL": lambda reader, names: reader._push_name(names.replace(" ", ".")),
    "STACK_GLOBAL": lambda reader, _: reader._push_name(".".join(reader._take(2))),
    "REDUCE": PickleReader._call,
    "BUILD": PickleReader._set_state,
    "BINPERSID": PickleReader._follow,
    "PUT": PickleReader._remember,
    "BINPUT": PickleReader._remember,
    "LONG_BINPUT": PickleReader._remember,
    "MEMOIZE": PickleReader._remember,
    "GET": PickleReader._recall,
    "BINGET": PickleReader._recall,
    "LONG_BINGET": PickleReader._recall,
}
