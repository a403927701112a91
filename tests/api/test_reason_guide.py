"""The page of reasons as values: what of its Markdown is understood, and what the API tells of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from framework.api.reason_guide import Explanation, ReasonGuide, Table, parse_guide, read_guide
from tests.api.world import make_world

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = """\
# Reasons

Before all parts.

## First part

Some words, see [Pools](pools.md#rules), and
more of them about `b_code`.

| code | means | what to do |
|---|---|---|
| `a_code` | it says `x \\| y` | nothing |
| `b_code` | as `a_code` | `paddock reload MODEL` |

## `paddock doctor`

| when | then |
|---|---|
| always | `a_code` |

| code | means | what to do |
|---|---|---|
| `a_code` | here it is another thing | look |
"""
GUIDE = parse_guide(PAGE)


def test_a_part_has_its_texts_and_tables_in_order() -> None:
    first, second = GUIDE.sections
    assert (first.title, second.title) == ("First part", "paddock doctor")
    assert first.opening == "Some words, see Pools, and more of them about `b_code`."
    assert second.opening == ""
    assert second.blocks[0] == Table(("when", "then"), (("always", "`a_code`"),))


def test_a_code_with_two_meanings_has_both() -> None:
    assert GUIDE.explain("a_code") == (
        Explanation("a_code", "First part", "it says `x | y`", "nothing"),
        Explanation("a_code", "paddock doctor", "here it is another thing", "look"),
    )
    assert GUIDE.codes == ("a_code", "b_code")


def test_where_a_code_is_named_is_found_but_not_its_own_rows() -> None:
    assert GUIDE.mentions("a_code") == ("`b_code`: as `a_code`", "always, `a_code`")
    assert GUIDE.mentions("b_code") == ("Some words, see Pools, and more of them about `b_code`.",)


def test_a_page_that_is_missing_explains_nothing(tmp_path: Path) -> None:
    assert read_guide(tmp_path / "none.md") == ReasonGuide()
    (tmp_path / "bytes.md").write_bytes(b"\xff")
    assert read_guide(tmp_path / "bytes.md") == ReasonGuide()


def test_the_real_page_is_read_whole() -> None:
    guide = read_guide(ROOT / "docs" / "reasons.md")
    assert len(guide.codes) > 100
    assert all(one.means and one.remedy for part in guide.sections for one in part.explanations)
    assert all("](" not in one.means + one.remedy for part in guide.sections for one in part.explanations)


async def test_a_script_gets_every_explanation() -> None:
    world = make_world()
    world.services = replace(world.services, reasons=GUIDE)
    async with world.client() as client:
        found = (await client.get("/api/v1/reasons")).json()["reasons"]
    assert [one["code"] for one in found] == ["a_code", "b_code", "a_code"]
    assert found[0] == {
        "code": "a_code",
        "section": "First part",
        "means": "it says `x | y`",
        "remedy": "nothing",
    }
