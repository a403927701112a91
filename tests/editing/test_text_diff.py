"""What one text has that the other lacks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from framework.editing.text_diff import MOST_COMPARED_LINES, as_text, diff_lines

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map("\n".join)


def test_only_what_is_near_a_change_is_shown() -> None:
    old = "".join(f"{n}\n" for n in range(20))
    new = old.replace("10\n", "ten\n")
    assert as_text(diff_lines(old, new)) == (
        "@ 7 unchanged lines\n  7\n  8\n  9\n- 10\n+ ten\n  11\n  12\n  13\n@ 6 unchanged lines\n"
    )


def test_numbers_are_those_of_each_side() -> None:
    lines = diff_lines("a\nb\n", "x\na\nb\n")
    assert [(line.kind, line.old_line, line.new_line) for line in lines] == [
        ("added", None, 1),
        ("same", 1, 2),
        ("same", 2, 3),
    ]


def test_the_same_text_has_no_lines() -> None:
    assert diff_lines("a\n", "a\n") == ()


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_it(old: str, new: str) -> None:
    lines = diff_lines(old, new)
    shown = [line for line in lines if line.kind != "skipped"]
    for line in shown:
        if line.old_line is not None:
            assert old.splitlines()[line.old_line - 1] == line.text
        if line.new_line is not None:
            assert new.splitlines()[line.new_line - 1] == line.text
    added = sum(line.kind == "added" for line in lines)
    removed = sum(line.kind == "removed" for line in lines)
    assert len(old.splitlines()) + added - removed == len(new.splitlines())


def test_texts_that_differ_all_over_are_shown_as_wholes() -> None:
    size = MOST_COMPARED_LINES + 1
    lines = diff_lines("a\n" * size, "b\n" * size)
    assert [line.kind for line in lines] == ["removed"] * size + ["added"] * size


def test_a_sign_that_ends_lines_elsewhere_hides_no_change() -> None:
    lines = diff_lines("# mine\u2028slots = 2\n", "# mine\nslots = 2\n")
    assert [line.text for line in lines] == ["# mine\u2028slots = 2", "# mine", "slots = 2"]
