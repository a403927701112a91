"""Templates: a page value in, HTML out. They escape everything, refuse unknown names and compute nothing.

Every template sees `viewer` (who looks) and the value of the page or part under one name; pages see the
addresses of `assets` too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from framework.api.shapes import at
from framework.dashboard.assets import Assets
from framework.dashboard.formats import width
from framework.dashboard.pages.event_rows import fact_texts
from framework.dashboard.pages.shell import NAVIGATION, Role, Viewer
from framework.dashboard.updates import Feed, Fragment
from framework.dashboard.urls import reason_url
from framework.values.plain_text import visible_lines
from framework.values.reason import Severity
from framework.values.units_text import count, counted, duration, percent, rate, size, stamp, tokens

FORMATS = (count, counted, duration, percent, rate, size, stamp, tokens, width)
FRAME = "base.html"
# Blocks that a page fills as a whole: they lean on what stands before them in its template.
WHOLE_PAGE = frozenset({"main", "scripts"})
SEVERITY_TONES: dict[Severity, str] = {"info": "idle", "warning": "wait", "error": "bad"}
SEVERITY_ICONS: dict[Severity, str] = {"info": "info", "warning": "warn", "error": "cross"}


class Templates:
    """The templates of one directory. Times are those of this machine's zone."""

    def __init__(self, templates_dir: Path, assets: Assets) -> None:
        self.environment = _environment(templates_dir)
        self._assets = assets

    def page(self, name: str, page: object, viewer: Viewer, block: str | None = None) -> str:
        """A whole page, or one block of it as it stands in the page."""
        values = {"page": page, "viewer": viewer, "assets": self._assets}
        if block is None:
            return self.environment.get_template(name).render(values)
        template = self._owner(name, block)
        return "".join(template.blocks[block](template.new_context(values)))

    def blocks(self, name: str) -> frozenset[str]:
        """The blocks of a page that can be asked for by themselves: its own, and those of the frame."""
        names = (name, FRAME)
        found = {block for part in names for block in self.environment.get_template(part).blocks}
        return frozenset(found - WHOLE_PAGE)

    def _owner(self, name: str, block: str) -> Template:
        """The template that defines a block as the page shows it."""
        template = self.environment.get_template(name)
        return template if block in template.blocks else self.environment.get_template(FRAME)

    def fragment(self, fragment: Fragment, viewer: Viewer | Role) -> str:
        """A part of a page, which carries the id of the element it takes the place of."""
        return self._part(fragment.template, fragment.variable, fragment.value, viewer)

    def feed(self, feed: Feed, items: tuple[object, ...], viewer: Viewer | Role) -> str:
        """New entries of a growing list, wrapped so that htmx puts them at the right end of it."""
        entries = "".join(self._part(feed.template, feed.variable, item, viewer) for item in items)
        return f'<{feed.element} hx-swap-oob="{feed.where}:#{feed.target}">{entries}</{feed.element}>'

    def _part(self, template: str, variable: str, value: object, viewer: Viewer | Role) -> str:
        return self.environment.get_template(template).render({variable: value, "viewer": viewer})


@cache
def _environment(templates_dir: Path) -> Environment:
    """Compiled once for a directory: templates are part of the program and do not change under it."""
    environment = Environment(
        loader=FileSystemLoader(templates_dir),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update({show.__name__: show for show in FORMATS})
    environment.filters.update(iso=at, exact=_exact, fact_texts=fact_texts, reason_url=reason_url)
    environment.globals.update(
        navigation=NAVIGATION, severity_tones=SEVERITY_TONES, severity_icons=SEVERITY_ICONS
    )
    return environment


def _finalize(value: Any) -> Any:
    """What every printed expression passes through: foreign text loses its invisible characters."""
    if value is None:
        raise TypeError("a template printed None; the page value must say what to show instead")
    return visible_lines(value) if type(value) is str else value


def _exact(text: str) -> Markup:
    """Text that must come back to us unchanged, for values of form fields only. Escaped all the same."""
    return Markup.escape(text)
