"""Read graph messages as text, in seconds where protobuf's own reader takes minutes."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from google.protobuf import text_format

from regal.frontends.tensorflow.schema import LEFT_OUT, Proto, new

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# protobuf's tokenizer scans the rest of the line again for every token: quadratic where the
# weights of a layer stand in one line.
LONGEST_STRING = 4096  # characters
_CONTENT = re.compile(r"tensor_content\s*:\s*(?=[\"'])")
# Escapes that Python's codec reads in another way than protobuf.
_ODD_ESCAPES = ("\\?", "\\x", "\\X", "\\u", "\\U", "\\\n")
_MARK = "regal lifted string {}"


def parse_text(name: str, text: str) -> Proto:
    """Return the message of the kind `name` that `text` describes.

    Raises:
        google.protobuf.text_format.ParseError: it does not; says where.
        RecursionError: it is nested too deep.
    """
    short, lifted = _lift(text)
    message = _parse(name, short)
    if lifted and not _put_back(message, lifted):
        return _parse(name, text)
    return message


def _parse(name: str, text: str) -> Proto:
    try:
        return text_format.Parse(text, new(name))
    except text_format.ParseError as error:
        field = re.search(r'has no field named "(\w+)"', str(error))
        if field is None or field[1] not in LEFT_OUT:
            raise
    return text_format.Parse(text, new(name), allow_unknown_field=True)


def _lift(text: str) -> tuple[str, dict[bytes, bytes]]:
    """Return `text` with a mark in place of each long string, and mark -> its bytes."""
    parts: list[str] = []
    lifted: dict[bytes, bytes] = {}
    done = 0
    for found in _CONTENT.finditer(text):
        begin = found.end()
        if begin < done:
            continue  # inside a string that was lifted
        end = _end_of_string(text, begin)
        string = text[begin + 1 : end]
        if end - begin < LONGEST_STRING or not _is_plain(string):
            continue
        data, _ = codecs.escape_decode(string.encode("ascii"))
        mark = _MARK.format(len(lifted))
        if mark in text:
            return text, {}
        parts += [text[done : begin + 1], mark]
        lifted[mark.encode()] = bytes(data)
        done = end
    return "".join([*parts, text[done:]]), lifted


def _end_of_string(text: str, begin: int) -> int:
    """Return the position of the quote that ends the string whose quote is at `begin`."""
    quote = text[begin]
    end = begin
    while True:
        end = text.find(quote, end + 1)
        if end < 0:
            return begin  # no end: too short to lift, and the parser says what is wrong
        first = end
        while text[first - 1] == "\\":
            first -= 1
        if (end - first) % 2 == 0:
            return end


def _is_plain(string: str) -> bool:
    """Return whether Python's codec reads the escapes of `string` as protobuf does."""
    if not string.isascii():
        return False
    rest = string.replace("\\\\", "")
    return not any(escape in rest for escape in _ODD_ESCAPES)


def _put_back(message: Proto, lifted: dict[bytes, bytes]) -> bool:
    """Fill in the lifted strings; return whether every one found its place."""
    for tensor in _tensors(message):
        data = lifted.pop(tensor.tensor_content, None)
        if data is not None:
            tensor.tensor_content = data
    return not lifted


def _tensors(message: Proto) -> Iterator[Proto]:
    """Yield the tensors that the nodes of a model hold as attributes."""
    for node in _nodes(message):
        for value in node.attr.values():
            if value.WhichOneof("value") == "tensor":
                yield value.tensor


def _nodes(message: Proto) -> Iterable[Proto]:
    graphs = [message] if hasattr(message, "library") else []
    if hasattr(message, "graph_def"):
        graphs = [message.graph_def]
    if hasattr(message, "meta_graphs"):
        graphs = [meta.graph_def for meta in message.meta_graphs]
    for graph in graphs:
        yield from graph.node
        for function in graph.library.function:
            yield from function.node_def
