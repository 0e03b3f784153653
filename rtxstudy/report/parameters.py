"""The parameters of a notebook: read from its tagged cell without running it, checked before a kernel starts."""

from __future__ import annotations

import ast
import contextlib
import csv
import functools
import io
import json
import operator
import tokenize
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from rtxlib.errors import InputError, nearest, shortened, shown

LARGEST = 10**12  # of a whole number; no count of anything in a notebook comes near it


@dataclass(frozen=True)
class Parameter:
    """One annotated assignment of the cell tagged ``parameters``."""

    name: str
    annotation: str  # as written: "Optional[int]"
    default: Any
    description: str  # the comment at the end of its line
    choices: tuple[Any, ...] | None  # of a Literal
    kind: Any = field(repr=False, compare=False)  # the annotation as a typing object


def read_parameters(path: Path) -> list[Parameter]:
    """The parameters of a notebook, read with ``ast``: no code of the notebook runs.

    Annotations may be ``int``, ``float``, ``str``, ``bool``, ``None``, ``Literal[…]``, ``list[…]``, ``dict[…, …]``
    and unions of these. ``papermill --help-notebook`` shows ``Optional[…]`` and ``Union[…]``, and leaves out a parameter whose
    annotation has a bar or quotes. A notebook without a cell tagged ``parameters`` has none.

    Raises ``InputError`` when the notebook cannot be read, when its parameters cell holds anything but imports and
    annotated assignments of literals, or when a default does not fit its own annotation.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        sources = ["".join(cell["source"]) for cell in tagged if cell["cell_type"] == "code"]
    except FileNotFoundError:
        raise InputError(f"There is no notebook {path}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as a notebook: {error}.") from None
    if not sources:
        return []
    if len(sources) > 1:
        raise InputError(f"{path.name} has {len(sources)} cells tagged 'parameters'; it may have one.")
    source = sources[0]
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        where = f"{path.name}, parameters cell, line {error.lineno}"
        raise InputError(f"{where}: {error.msg}.") from None
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    parameters = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):  # such as the import of Literal
            continue
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value):
            raise InputError(
                f"{path.name}, parameters cell, line {node.lineno}: '{ast.unparse(node)}' must be an annotated "
                "assignment such as 'seeds: int | None = None'."
            )
        name = node.target.id
        try:
            kind = _kind(node.annotation)
            value = ast.literal_eval(node.value)
            _convert(value, kind, text=False)
        except ValueError as error:
            raise InputError(f"{path.name}, parameter '{name}': {error}") from None
        choices = next((get_args(part) for part in (kind, *get_args(kind)) if get_origin(part) is Literal), None)
        comment = comments.get(node.end_lineno or node.lineno, "")
        parameters.append(Parameter(name, ast.unparse(node.annotation), value, comment, choices, kind))
    return parameters


def check(path: Path, values: Mapping[str, Any], text: bool = False) -> dict[str, Any]:
    """``values``, checked against the types that the notebook declares.

    Values have the types of JSON, and a string stays as it is: a column may be called ``null`` or end in a space. With ``text``
    the values are strings of a command line, and each is read by its annotation: ``"3"``, ``"none"``, ``"true"``, ``"[a, b]"``
    or ``"a,b"``, ``"{1: bad, 2: good}"``.

    Raises ``InputError`` for an unknown name (and names the nearest), a value of another type, a value outside its
    ``Literal``, a whole number above :data:`LARGEST`, or a string that no notebook can hold, because it is not UTF-8.
    """
    by_name = {parameter.name: parameter for parameter in read_parameters(path)}
    checked = {}
    for name, value in values.items():
        if name not in by_name:
            has = f"It has: {', '.join(by_name)}." if by_name else "It has none."
            raise InputError(f"Notebook {path.stem} has no parameter '{shortened(name)}'.{nearest(name, by_name)} {has}")
        try:
            checked[name] = _convert(value, by_name[name].kind, text)
        except ValueError as error:
            raise InputError(f"Notebook {path.stem}, parameter '{name}': {error}") from None
        if isinstance(checked[name], int) and abs(checked[name]) > LARGEST:
            raise InputError(f"Notebook {path.stem}, parameter '{name}': {shown(checked[name])} is above {LARGEST:,}.")
        try:
            json.dumps(checked[name], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            strange = shown(checked[name])
            raise InputError(f"Notebook {path.stem}, parameter '{name}': {strange} is not UTF-8; rename it.") from None
    return checked


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``["seeds=3", "models=[a,b]"]`` as a dictionary. Raises ``InputError`` for one without a name or ``=``."""
    split = [text.partition("=") for text in texts]
    for name, equals, value in split:
        if not (name.strip().isidentifier() and equals):
            raise InputError(f"A parameter is given as name=value (seeds=3), not as '{shortened(name + equals + value)}'.")
    return {name.strip(): value.strip() for name, _, value in split}


def _kind(node: ast.expr) -> Any:
    """The typing object of an annotation, without executing it. Raises ``ValueError`` for any other annotation."""
    plain = {"int": int, "float": float, "str": str, "bool": bool}
    if isinstance(node, ast.Name) and node.id in plain:
        return plain[node.id]
    if isinstance(node, ast.Constant) and node.value is None:
        return type(None)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _kind(node.left) | _kind(node.right)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id == "Literal":
            return Literal[tuple(ast.literal_eval(part) for part in inner)]
        if node.value.id in ("Optional", "Union"):
            kinds = [_kind(part) for part in inner] + [type(None)] * (node.value.id == "Optional")
            return functools.reduce(operator.or_, kinds)
        if (node.value.id, len(inner)) in (("list", 1), ("dict", 2)):
            return {"list": list, "dict": dict}[node.value.id][tuple(_kind(part) for part in inner)]
    raise ValueError(
        f"the annotation '{ast.unparse(node)}' is not understood; use int, float, str, bool, None, Literal[...], "
        "list[...], dict[..., ...], Optional[...] or a union of these."
    )


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert(value: Any, kind: Any, text: bool) -> Any:
    """``value`` as ``kind``. With ``text``, a string may stand for any kind. Raises ``ValueError`` if it cannot."""
    origin, args = get_origin(kind), get_args(kind)
    from_text = text and isinstance(value, str)
    bare = value.strip().strip("'\"") if from_text else value
    if origin in (Union, types.UnionType):
        members = sorted(args, key=lambda arg: arg is str)  # every string is a str, so str is tried last
        for arg in members:
            with contextlib.suppress(ValueError):
                return _convert(value, arg, text)
        for arg in members:
            if get_origin(arg) is Literal:
                _convert(value, arg, text)  # raises again, with a message that names the choices
    elif origin is Literal:
        for choice in args:
            if (value == choice and type(value) is type(choice)) or (from_text and bare == str(choice)):
                return choice
        raise ValueError(f"{shown(value)} is none of {', '.join(map(repr, args))}.{nearest(str(value), map(str, args))}")
    elif origin is list and (from_text or isinstance(value, list | tuple)):
        return [_convert(item, args[0], text) for item in (_items(value, "[]") if from_text else value)]
    elif origin is dict and (from_text or isinstance(value, dict)):
        entries = [item.partition(":")[::2] for item in _items(value, "{}")] if from_text else value.items()
        return {_convert(key, args[0], text): _convert(item, args[1], text) for key, item in entries}
    elif kind is bool and from_text and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()]
    elif kind in (int, float) and from_text:
        with contextlib.suppress(ValueError):
            return kind(bare)
    elif kind is type(None) and from_text and bare.lower() in ("none", "null"):
        return None
    elif kind is float and type(value) in (int, float):
        return float(value)
    elif type(value) is kind:  # not isinstance, because True is an int
        return bare
    kind_name = "None" if kind is type(None) else kind.__name__ if origin is None else str(kind).replace("typing.", "")
    raise ValueError(f"{shown(value)} is not of type {kind_name}.")


def _items(text: str, brackets: str) -> list[str]:
    """``"[a, 'b']"`` or ``"a,b"`` → ``["a", "b"]``. A comma within double quotes does not separate.

    Raises ``ValueError`` for a text that is no line of comma-separated values.
    """
    inner = text.strip().removeprefix(brackets[0]).removesuffix(brackets[1]).strip()
    try:
        return [item.strip().strip("'") for item in next(csv.reader([inner], skipinitialspace=True))] if inner else []
    except csv.Error as error:  # a line break, or an item of more than 128 KB
        raise ValueError(f"{shown(text)} cannot be separated at its commas ({error}).") from None
