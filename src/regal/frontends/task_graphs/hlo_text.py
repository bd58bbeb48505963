"""HLO in text form, as XLA dumps it: one instruction per line inside of named computations.

Read are names, opcodes, shapes, operands, called computations, and what the work of dots,
convolutions and windows depends on. Layouts, literals, metadata and shardings are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import text_of
from regal.frontends.task_graphs.hlo import (
    BITS,
    Instruction,
    Module,
    Shape,
    computation_of,
    graph_of,
)
from regal.graph.check import require_valid_model
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from regal.frontends.task_graphs.hlo import Computation

NAME = r"%?([\w.\-]+)"
HEADER = re.compile(rf"^\s*(ENTRY\s+)?{NAME}\s*(\(.*)?\{{\s*$")
# Attributes, too, may begin a line; they have no spaces around their "=".
ASSIGNMENT = re.compile(rf"^\s*(ROOT\s+)?{NAME}\s+=\s+(.*)$", re.DOTALL)
ARRAY = re.compile(r"\s*(\w+)\[([^\]]*)\]")
OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
CALLS = re.compile(
    r"\b(?:calls|to_apply|condition|body|true_computation|false_computation|branch_computations"
    r"|called_computations|select|scatter)=(\{[^}]*\}|%?[\w.\-]+)"
)
BRACKET_OR_COMMA = re.compile(r"[(\[{}\]),]")
BRACKET_OR_TEXT = re.compile(r'[(\[{}\])]|"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"/\*.*?\*/")
GIVEN = frozenset({"constant", "parameter", "iota"})  # what is in their brackets is no operand
INDEX = r"\bindex=(\d{1,9})"
MOST_SHAPE_LEVELS = 32


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the entry computation as a graph.

    Raises:
        ModelError: names the line.
    """
    module = module_of(text_of(data, name), name)
    graph = graph_of(module, name)
    return require_valid_model(LoadedModel(framework="graph", entries=(graph,), source=None))


def module_of(text: str, name: str) -> Module:
    """Return the module of an HLO text.

    Raises:
        ModelError: names the line.
    """
    title = re.search(rf"^\s*HloModule\s+{NAME}", text, re.MULTILINE)
    computations: dict[str, Computation] = {}
    entry = ""
    for block in _blocks(text, name):
        computations[block.label] = _computation(block, name)
        entry = block.label if block.is_entry or not entry else entry
    if not computations:
        raise ModelError(f"'{name}' holds no HLO computation")
    label = title.group(1) if title is not None else "module"
    return Module(name=label, computations=computations, entry=entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The lines of a computation; a statement may have gone over several."""

    label: str
    is_entry: bool
    line: int
    statements: list[tuple[int, str]]  # line, text


def _blocks(text: str, name: str) -> Iterator[_Block]:
    block: _Block | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = COMMENT.sub("", raw)
        if block is None:
            header = HEADER.match(line)
            if header is not None and not line.lstrip().startswith(("HloModule", "//")):
                is_entry = header.group(1) is not None
                block = _Block(label=header.group(2), is_entry=is_entry, line=number, statements=[])
        elif line.strip().startswith("}"):
            yield block
            block = None
        elif ASSIGNMENT.match(line):
            block.statements.append((number, line))
        elif block.statements:
            first, statement = block.statements.pop()
            block.statements.append((first, f"{statement} {line.strip()}"))
    if block is not None:
        raise ModelError(f"'{name}': computation '{block.label}' of line {block.line} has no end")


def _computation(block: _Block, name: str) -> Computation:
    instructions: dict[str, Instruction] = {}
    root = ""
    for number, statement in block.statements:
        where = f"'{name}': line {number}"
        assignment = ASSIGNMENT.match(statement)
        if assignment is None:
            continue
        instruction = _instruction(assignment.group(2), assignment.group(3), instructions, where)
        if instruction.name in instructions:
            raise ModelError(f"{where} is another instruction '{instruction.name}'")
        instructions[instruction.name] = instruction
        root = instruction.name if assignment.group(1) or not root else root
    where = f"'{name}': line {block.line}"
    if not instructions:
        raise ModelError(f"{where}: computation '{block.label}' has no instruction")
    return computation_of(block.label, tuple(_in_order(instructions, where)), root)


def _in_order(instructions: Mapping[str, Instruction], where: str) -> Iterator[Instruction]:
    """Yield the instructions, operands first, else as in the file."""
    done: set[str] = set()
    for start in instructions:
        stack = [start]
        while stack:
            name = stack[-1]
            missing = [
                operand
                for operand in instructions[name].operands
                if operand in instructions and operand not in done
            ]
            if name in done or not missing:
                stack.pop()
                if name not in done:
                    done.add(name)
                    yield instructions[name]
            elif len(stack) > len(instructions):
                raise ModelError(f"{where}: instruction '{name}' reads itself: a circle")
            else:
                stack.append(missing[0])


def _instruction(
    name: str, text: str, earlier: Mapping[str, Instruction], where: str
) -> Instruction:
    has_shape = OPCODE.match(text) is None
    shape, at = _shape(text, 0, where) if has_shape else (None, 0)
    opcode = OPCODE.match(text, at)
    if opcode is None:
        raise ModelError(f"{where}: instruction '{name}' has no opcode after its shape")
    end = _closing(text, opcode.end() - 1, where)
    inside, attributes = text[opcode.end() : end], text[end + 1 :]
    kind = opcode.group(1)
    operands = () if kind in GIVEN else tuple(w.lstrip("%") for w in _operands(inside))
    if shape is None:
        shape = _inferred(kind, operands, _number(attributes, INDEX), earlier, where)
    return Instruction(
        name=name,
        opcode=kind,
        shape=shape,
        operands=operands,
        waits=_names(attributes, r"control-predecessors=\{([^}]*)\}"),
        calls=tuple(
            called
            for match in CALLS.finditer(attributes)
            for called in re.findall(NAME, match.group(1))
        ),
        index=_number(attributes, INDEX),
        contracted=_numbers(attributes, r"\blhs_contracting_dims=\{([\d,\s]*)\}"),
        window=_window(attributes),
        features=_features(attributes),
    )


def _inferred(
    kind: str,
    operands: tuple[str, ...],
    index: int,
    earlier: Mapping[str, Instruction],
    where: str,
) -> Shape:
    """Return the shape of an instruction without one, as hand-written texts have them."""
    missing = next((operand for operand in operands if operand not in earlier), None)
    if missing is not None or not operands:
        raise ModelError(f"{where} has no shape, and none follows from '{missing or kind}'")
    shapes = [earlier[operand].shape for operand in operands]
    if kind == "tuple":
        return Shape(dtype="tuple", parts=tuple(shapes))
    if kind == "get-tuple-element":
        parts = shapes[0].parts or ()
        if index >= len(parts):
            raise ModelError(f"{where} takes part {index} of what is no such tuple")
        return parts[index]
    return shapes[0]  # element by element


def _operands(text: str) -> Iterator[str]:
    """Yield the names of operands; each may have its shape before it."""
    depth = start = 0
    for match in BRACKET_OR_COMMA.finditer(text):
        character = match.group()
        if character == "," and depth == 0:
            yield from text[start : match.start()].split()[-1:]
            start = match.end()
        elif character != ",":
            depth += 1 if character in "([{" else -1
    yield from text[start:].split()[-1:]


def _shape(text: str, at: int, where: str, level: int = 0) -> tuple[Shape, int]:
    """Return the shape at a position, and where it ends; its layout is skipped."""
    if level > MOST_SHAPE_LEVELS:
        raise ModelError(f"{where}: tuples nested deeper than {MOST_SHAPE_LEVELS}")
    while at < len(text) and text[at].isspace():
        at += 1
    if at < len(text) and text[at] == "(":
        parts: list[Shape] = []
        at += 1
        while True:
            while at < len(text) and (text[at].isspace() or text[at] == ","):
                at += 1
            if at >= len(text):
                raise ModelError(f"{where}: a tuple shape has no end")
            if text[at] == ")":
                return Shape(dtype="tuple", parts=tuple(parts)), at + 1
            part, at = _shape(text, at, where, level + 1)
            parts.append(part)
    array = ARRAY.match(text, at)
    if array is None or array.group(1) not in BITS:
        raise ModelError(f"{where}: '{text[at : at + 20]}' is no shape that can be read")
    words = [word.strip().removeprefix("<=") for word in array.group(2).split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise ModelError(f"{where}: shape '{array.group(0).strip()}' has unknown sizes")
    at = array.end()
    if at < len(text) and text[at] == "{":
        at = _closing(text, at, where) + 1
    return Shape(dtype=array.group(1), dimensions=tuple(map(int, words))), at


def _closing(text: str, at: int, where: str) -> int:
    """Return where the bracket at `at` is closed; texts in quotes are skipped."""
    depth = 0
    for match in BRACKET_OR_TEXT.finditer(text, at):
        character = match.group()
        if character[0] != '"':
            depth += 1 if character in "([{" else -1
            if depth == 0:
                return match.start()
    if text[at] == "(":  # the literal of a constant that goes on in the next line
        return len(text)
    raise ModelError(f"{where}: a '{text[at]}' is never closed")


def _names(text: str, pattern: str) -> tuple[str, ...]:
    match = re.search(pattern, text)
    return tuple(re.findall(NAME, match.group(1))) if match else ()


def _number(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    return int(match.group(1)) if match else 0


def _numbers(text: str, pattern: str) -> tuple[int, ...]:
    match = re.search(pattern, text)
    return tuple(int(word) for word in match.group(1).split(",") if word.strip()) if match else ()


def _window(text: str) -> int:
    """Return the elements of `window={size=3x3 ..}`."""
    match = re.search(r"\bwindow=\{size=([\dx]{1,60})", text)
    return max(1, prod(int(word) for word in match.group(1).split("x") if word)) if match else 1


def _features(text: str) -> int:
    """Return which dimension of the kernel `dim_labels=b01f_01io->b01f` calls its outputs."""
    match = re.search(r"\bdim_labels=\w*?_(\w+)->", text)
    return max(0, match.group(1).find("o")) if match else 0
