"""Reads XML that nobody vouches for: no document types, no entities, bounded in size, depth and elements.

Only what the caller wants is kept; the long lists of ports that fill most of a report never become objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from penstock.profiling.vitis.reading import XML_LIMIT, chunks, unreadable

MAX_DEPTH = 64
MAX_PARTS = 4_000_000
_MAX_TEXT = 4096


@dataclass
class XmlNode:
    """One element. Attributes keep their names; text is what stands before the first child."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[XmlNode] = field(default_factory=list["XmlNode"])

    def child(self, tag: str) -> XmlNode | None:
        return next((child for child in self.children if child.tag == tag), None)

    def at(self, *path: str) -> XmlNode | None:
        node: XmlNode | None = self
        for tag in path:
            node = None if node is None else node.child(tag)
        return node

    def word(self, *path: str) -> str | None:
        node = self.at(*path)
        return None if node is None else node.text.strip()

    def every(self, tag: str) -> Iterator[XmlNode]:
        """All elements of a name below this one, in the order of the file."""
        stack = list(reversed(self.children))
        while stack:
            node = stack.pop()
            if node.tag == tag:
                yield node
            stack.extend(reversed(node.children))


class _Builder:
    def __init__(self, path: Path, skipped: Collection[str]) -> None:
        self.path, self.skipped = path, skipped
        self.root: XmlNode | None = None
        self.stack: list[XmlNode] = []
        self.depth = self.parts = 0
        self.ignored_from = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise unreadable(self.path, "elements are nested too deep", limit=f"at most {MAX_DEPTH} levels")
        if self.ignored_from:
            return
        if tag in self.skipped:
            self.ignored_from = self.depth
            return
        self.parts += 1 + len(attributes)
        if self.parts > MAX_PARTS:
            raise unreadable(self.path, "too many elements", limit=f"at most {MAX_PARTS} with their attributes")
        node = XmlNode(tag, {name: value[:_MAX_TEXT] for name, value in attributes.items()})
        if self.stack:
            self.stack[-1].children.append(node)
        elif self.root is None:
            self.root = node
        self.stack.append(node)

    def end(self, _tag: str) -> None:
        if not self.ignored_from:
            self.stack.pop()
        elif self.ignored_from == self.depth:
            self.ignored_from = 0
        self.depth -= 1

    def data(self, text: str) -> None:
        if self.stack and not self.ignored_from and not self.stack[-1].children:
            node = self.stack[-1]
            node.text = (node.text + text)[:_MAX_TEXT]

    def forbidden(self, *_: object) -> int:
        raise unreadable(
            self.path, "the XML declares a document type or entities", limit="reports of the tools have none"
        )


def read_xml(path: Path, skipped: Collection[str] = (), limit: int = XML_LIMIT) -> XmlNode:
    """The document's root, without the elements named in `skipped`."""
    parser, builder = expat.ParserCreate(), _Builder(path, skipped)
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = builder.forbidden
    parser.EntityDeclHandler = builder.forbidden
    parser.ExternalEntityRefHandler = builder.forbidden
    seen = False
    try:
        for piece in chunks(path, limit):
            seen = seen or bool(piece.strip())
            parser.Parse(piece, False)
        if not seen:
            raise unreadable(path, "the report is empty")
        parser.Parse(b"", True)
    except (expat.ExpatError, UnicodeError, LookupError, ValueError) as error:
        raise unreadable(path, f"not well-formed XML: {error}", hint="the report was cut off or damaged") from error
    if builder.root is None:
        raise unreadable(path, "the report has no content")
    return builder.root
