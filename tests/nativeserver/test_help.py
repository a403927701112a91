"""What `--help` and `--version` say, as the manager's own reader understands it (12 §1.1-1.2, 06 §4)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from framework.engines.help_text import parse_help
from framework.nativeserver.flag_reference import reference_table
from framework.nativeserver.flags.table import SECTIONS
from framework.nativeserver.help_text import help_text, version_text
from framework.planning.speculation import native
from framework.values.engine import Capabilities
from framework.values.request import SpecPolicy
from tests.support.cost import least_cost_of_child_s

LISTED = [flag for section in SECTIONS for flag in section.flags]


@pytest.fixture(scope="module")
def caps() -> Capabilities:
    return parse_help(help_text(), exit_code=0, version_text=version_text())


def test_a_probe_of_it_is_conclusive_and_knows_the_version(caps: Capabilities) -> None:
    assert caps.conclusive
    assert not caps.is_partial
    assert caps.version != "unknown"
    assert caps.build.endswith("-native")


def test_every_listed_flag_is_found_with_the_right_kind(caps: Capabilities) -> None:
    real = [flag for flag in LISTED if flag.role != "removed"]
    spellings = {spelling for flag in real for spelling in flag.spellings}
    assert caps.flags | caps.short_flags == spellings
    assert caps.switches == {s for flag in real if flag.value is None for s in flag.spellings}


def test_the_types_are_those_of_this_build(caps: Capabilities) -> None:
    assert caps.spec_types == (
        *("none", "draft-simple", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"),
    )
    assert caps.mtp_token is None
    found = (caps.ngram_flavour, caps.depth_flag, caps.drafter_flag)
    assert found == ("new", "--spec-draft-n-max", "--model-draft")
    assert caps.has("--spec-default")


def test_the_manager_finds_the_flags_that_only_this_engine_has(caps: Capabilities) -> None:
    for flag in (
        native.ADAPTIVE_FLAG,
        native.CONTROLLER_FLAG,
        native.GUARD_FLAG,
        *native.GUARD_FLAGS.values(),
    ):
        assert caps.has(flag), flag
        assert flag not in caps.switches
    guard = {"mode": "stop", **dict.fromkeys(native.GUARD_FLAGS, 300)}
    policy = SpecPolicy(is_adaptive=True, controller="fringe", loop_guard=guard)
    assert native.settings_not_built(policy, caps) == []


@pytest.mark.parametrize(
    "prefix",
    ["--spec-dflash", "--spec-hidden", "--spec-pad"],
)
def test_what_this_build_lacks_is_not_offered(caps: Capabilities, prefix: str) -> None:
    assert not [flag for flag in caps.flags if flag.startswith(prefix)]


def test_removed_flags_are_stubs_with_their_replacement(caps: Capabilities) -> None:
    assert caps.removed["--draft-max"] == "use --spec-draft-n-max or --spec-ngram-mod-n-max"
    assert "--draft-max" not in caps.flags


def test_what_is_refused_is_not_offered(caps: Capabilities) -> None:
    assert not caps.has("--rpc")
    assert not caps.has("--hf-repo")


def test_switches_that_depend_on_the_build_are_there(caps: Capabilities) -> None:
    for flag in (
        "--kv-unified",
        "--fit-ctx",
        "--fit-target",
        "--cache-ram",
        "--ctx-checkpoints",
        "--metrics",
    ):
        assert caps.has(flag), flag
    assert caps.adapter_form == "colon"
    assert caps.trace_level == 4


def test_lines_are_narrow_and_have_no_trailing_blanks() -> None:
    for line in help_text().splitlines():
        assert len(line) <= 110 or line.startswith("-"), line
        assert line == line.rstrip()


def test_the_reference_names_every_listed_flag() -> None:
    table = reference_table()
    assert not [flag.names[0] for flag in LISTED if f"`{flag.names[0]}" not in table]


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_answer_takes_less_than_a_second_without_core_and_http_server(argument: str) -> None:
    heavy = "paddock_native starlette uvicorn jinja2 pydantic"
    code = (
        "import sys; from framework.nativeserver.process import run; status = run(sys.argv[1:], {});"
        f" sys.exit(status or ' '.join(m for m in '{heavy}'.split() if m in sys.modules) or 0)"
    )

    def answered() -> None:
        done = subprocess.run(
            [sys.executable, "-c", code, argument], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout

    assert least_cost_of_child_s(answered, below_s=1.0) < 1.0
