"""What is sent again, and what is not."""

from __future__ import annotations

from framework.dashboard.updates import Feed, Fragment, Grown, Sent, Update, Whole


def leaf(name: str, value: object = 1) -> Fragment:
    return Fragment(name, f"_{name}.html", "value", value)


def parent(*parts: Fragment, outline: object = "same", value: object = None) -> Fragment:
    return Fragment("parent", "_parent.html", "value", value, outline=outline, parts=parts)


def feed(*numbers: int, outline: object = "same") -> Fragment:
    items = Feed("list", "beforeend", "_item.html", "item", tuple((n, f"line {n}") for n in numbers))
    return Fragment("box", "_box.html", "value", numbers, outline=outline, feed=items)


def names(updates: list[Update]) -> list[str]:
    return [update.fragment.id if isinstance(update, Whole) else update.feed.target for update in updates]


def shown(*fragments: Fragment) -> Sent:
    sent = Sent()
    sent.remember(fragments)
    return sent


def test_a_page_at_rest_sends_nothing() -> None:
    page = (leaf("a"), parent(leaf("b")), feed(1, 2))
    assert shown(*page).changes(page) == []


def test_everything_is_sent_to_a_page_of_unknown_age() -> None:
    assert names(Sent().changes((leaf("a"), leaf("b")))) == ["a", "b"]


def test_only_what_changed_is_sent() -> None:
    assert names(shown(leaf("a"), leaf("b")).changes((leaf("a"), leaf("b", 2)))) == ["b"]


def test_a_change_is_sent_once() -> None:
    sent = shown(leaf("a"))
    sent.changes((leaf("a", 2),))
    assert sent.changes((leaf("a", 2),)) == []


def test_a_part_is_sent_without_its_neighbours() -> None:
    sent = shown(parent(leaf("b"), leaf("c"), value="old"))
    assert names(sent.changes((parent(leaf("b"), leaf("c", 2), value="new"),))) == ["c"]


def test_a_changed_outline_sends_the_whole_with_its_parts() -> None:
    sent = shown(parent(leaf("b"), outline=("b",)))
    page = (parent(leaf("b"), leaf("c"), outline=("b", "c")),)
    assert names(sent.changes(page)) == ["parent"]
    assert sent.changes(page) == []


def test_new_items_of_a_feed_are_sent_alone() -> None:
    updates = shown(feed(1, 2)).changes((feed(1, 2, 5, 6),))
    assert [update.items for update in updates if isinstance(update, Grown)] == [("line 5", "line 6")]


def test_items_of_a_feed_are_sent_once() -> None:
    sent = shown(feed(1, 2))
    sent.changes((feed(2, 3),))
    assert sent.changes((feed(2, 3),)) == []


def test_a_feed_that_ran_past_its_window_is_sent_whole() -> None:
    assert names(shown(feed(1, 2)).changes((feed(8, 9),))) == ["box"]


def test_a_vanished_part_is_sent_again_when_it_comes_back() -> None:
    sent = shown(parent(leaf("b"), outline=("b",)))
    sent.changes((parent(outline=()),))
    sent.changes((parent(leaf("b"), outline=("b",)),))
    assert names(sent.changes((parent(leaf("b", 2), outline=("b",)),))) == ["b"]
