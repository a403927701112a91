"""The name in a path: `/models/NAME` and `/models/NAME/VERB`, where names may hold slashes and colons.

Names are percent-encoded by careful clients, so the path is split before it is decoded: `a%2Flogs` is a
model called `a/logs`, `a/logs` are the logs of `a`. Unencoded slashes work as long as they mean one thing.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Scope


class AnyText(Convertor[str]):
    """The rest of a path, whatever it holds; `path` of starlette takes no line end."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """As it is."""
        return value

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


ANY = "any"
"""What routes call it: `{name:any}`."""
register_url_convertor(ANY, AnyText())


def split_name(scope: Scope, prefix: str, verbs: Collection[str]) -> tuple[str, str]:
    """The decoded name and the verb after it (empty when there is none) of a path below `prefix`."""
    raw = scope.get("raw_path") or quote(str(scope["path"])).encode("ascii")
    path = raw.decode("latin-1").removeprefix(prefix)
    head, slash, last = path.rpartition("/")
    if slash and last in verbs:
        return unquote(head), last
    return unquote(path), ""
