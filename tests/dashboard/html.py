"""HTML as a tree, for tests that look at pages: strict about nesting, so that a broken fragment is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
# Elements without content that SVG may close in the start tag.
SELF_CLOSED = frozenset({"path", "circle", "rect", "use"})


class BrokenHtml(AssertionError):
    """Tags that do not match, or an attribute given twice."""


@dataclass
class Element:
    """An element; `text` is its own text and that of everything in it, in order."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, with blanks collapsed."""
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join(" ".join(parts).split())

    @property
    def classes(self) -> set[str]:
        """The names of its class attribute."""
        return set(self.attributes.get("class", "").split())

    def all(self, tag: str | None = None, **attributes: str) -> Iterator[Element]:
        """Elements below this one, in order; `class_` asks for one class, `data_x` for `data-x`."""
        for child in self.children:
            if isinstance(child, str):
                continue
            if child.is_a(tag, attributes):
                yield child
            yield from child.all(tag, **attributes)

    def one(self, tag: str | None = None, **attributes: str) -> Element:
        """The only element below this one that fits."""
        found = list(self.all(tag, **attributes))
        assert len(found) == 1, f"{len(found)} elements fit {tag} {attributes}"
        return found[0]

    def is_a(self, tag: str | None, attributes: dict[str, str]) -> bool:
        """Whether this element fits."""
        if tag is not None and self.tag != tag:
            return False
        for name, value in attributes.items():
            if name == "class_":
                if value not in self.classes:
                    return False
            elif self.attributes.get(name.replace("_", "-")) != value:
                return False
        return True


def parse(html: str) -> Element:
    """A root element with everything in it. Raises BrokenHtml."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    if len(parser.open) != 1:
        raise BrokenHtml(f"<{parser.open[-1].tag}> is never closed")
    return parser.open[0]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("root", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len({name for name, _ in attrs}) != len(attrs):
            raise BrokenHtml(f"<{tag}> has an attribute twice: {attrs}")
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SELF_CLOSED:
            raise BrokenHtml(f"<{tag}/> is no way to close that element")
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            raise BrokenHtml(f"</{tag}> closes <{self.open[-1].tag}>")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)
