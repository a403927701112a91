"""A small vocabulary for tests that read manifests: read a text, look at the problems, look at a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from framework.manifest.load import Loaded, check_text
from framework.values.manifest import Manifest
from framework.values.override import Override
from framework.values.problem import Problem
from framework.values.request import ModelRequest

MODEL = '[models.m]\nsource = "m.gguf"\n'
"""The shortest model."""
VARIABLE = "PADDOCK_OF_A_TEST"


@dataclass(frozen=True)
class Reading:
    """What reading a manifest came to, with short ways to ask about it."""

    loaded: Loaded

    @property
    def manifest(self) -> Manifest:
        """The manifest, which has no error."""
        assert self.loaded.manifest is not None, self.sentences
        return self.loaded.manifest

    @property
    def errors(self) -> list[Problem]:
        """Problems without the warnings."""
        return [problem for problem in self.loaded.problems if problem.severity == "error"]

    @property
    def codes(self) -> list[str]:
        """Codes of the errors, in order of place."""
        return [problem.code for problem in self.errors]

    @property
    def paths(self) -> list[str]:
        """Dotted paths of the errors, in order of place."""
        return [problem.path for problem in self.errors]

    @property
    def sentences(self) -> list[str]:
        """Everything that is said."""
        return [problem.sentence for problem in self.loaded.problems]

    @property
    def only(self) -> Problem:
        """The one error."""
        assert len(self.errors) == 1, self.sentences
        return self.errors[0]

    @property
    def warnings(self) -> list[Problem]:
        """Warnings other than that the weights of the examples are not there."""
        quiet = ("model_missing",)
        return [p for p in self.loaded.problems if p.severity == "warning" and p.code not in quiet]

    def request(self, name: str = "m") -> ModelRequest:
        """What is asked of one model."""
        return self.manifest.models[name]


def read(
    text: str,
    environ: Mapping[str, str] | None = None,
    *,
    path: Path = Path("/nowhere/serve.toml"),
    overrides: Mapping[str, str] | None = None,
) -> Reading:
    """Read a text as if it stood in `path`, with `overrides` that all come from `VARIABLE`."""
    given = {key: Override(value, VARIABLE) for key, value in (overrides or {}).items()}
    return Reading(check_text(path, text, environ or {}, overrides=given))


def read_model(keys: str) -> Reading:
    """Read a manifest with one model `m` that has these keys besides its source."""
    return read(MODEL + keys)
