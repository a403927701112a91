"""Writing of grammars, and the check of those that others wrote."""

from __future__ import annotations

import pytest

from framework.chat.gbnf import MAX_GRAMMAR_CHARS, GrammarError, Rules, add_until, char_class, quote, repeat
from framework.chat.gbnf_check import MAX_DEPTH, check_grammar


def test_quotes_escape_what_ends_a_literal_and_what_no_line_may_hold() -> None:
    assert quote('a"b\\c\nd\x01é') == r'"a\"b\\c\nd\x01\u00E9"'


def test_classes_write_brackets_and_dashes_as_numbers() -> None:
    assert char_class([(97, 122), (45, 45), (93, 93)], negated=True) == r"[^a-z\x2D\x5D]"


@pytest.mark.parametrize(
    ("least", "most", "suffix"),
    [
        (0, None, "*"),
        (1, None, "+"),
        (0, 1, "?"),
        (1, 1, ""),
        (2, 2, "{2}"),
        (2, None, "{2,}"),
        (0, 5, "{0,5}"),
    ],
)
def test_counts_have_their_shortest_form(least: int, most: int | None, suffix: str) -> None:
    assert repeat("x", least, most) == f"x{suffix}"


def test_equal_rules_are_kept_once_and_names_never_clash() -> None:
    rules = Rules()
    assert rules.add("a b", '"x"') == "a-b"
    assert rules.add("other", '"x"') == "a-b"
    assert rules.add("a-b", '"y"') == "a-b-2"
    assert rules.add("root", '"z"') == "root-2"
    assert rules.space() == "space"


def test_rules_that_grow_too_large_are_refused() -> None:
    rules = Rules()
    with pytest.raises(GrammarError, match="more than"):
        rules.add("large", '"' + "x" * MAX_GRAMMAR_CHARS + '"')


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a"',
        'root ::= | "b"',
        "root ::= [a-z\\u00FF]+ | .",
        'root ::=\n "a" |\n "b" # said\n',
        'root ::= ("a"\n "b")* x{2,3}\nx ::= <[5]>',
        'root ::= ("a"?)* "b"',
    ],
)
def test_grammars_that_the_engine_takes_pass(grammar: str) -> None:
    check_grammar(grammar)


@pytest.mark.parametrize(
    ("grammar", "told"),
    [
        ("", "no rule named root"),
        ('x ::= "a"', "no rule named root"),
        ("root ::= (", "closing bracket"),
        ("root ::= a", "a, which is not defined"),
        ('root ::= root "a" | "b"', "starts with itself"),
        ('root ::= a\na ::= "x"? b\nb ::= a "y"', "starts with itself"),
        ('root ::= "a"{2000}', "counts in rising order"),
        # The engine's parser never comes back from this one.
        ('root ::= ("a"){3,2}', "counts in rising order"),
        ('root ::= "\\q"', "known escapes"),
        ('root ::= "a\nb"', "line 1"),
        ("root ::= " + "(" * (MAX_DEPTH + 1), "nested deeper"),
        ('root ::= "a"\n\nroot_x ::= "b"', "line 3"),
        ('root ::= "a\0"', "NUL"),
        ('root ::= "' + "abc" * 100 + '"{1999}', "elements"),
        ("x" * (MAX_GRAMMAR_CHARS + 1), "characters"),
        ("".join(f'r{at} ::= "a"\n' for at in range(10_002)), "rules"),
    ],
)
def test_grammars_that_would_hurt_are_refused(grammar: str, told: str) -> None:
    with pytest.raises(GrammarError, match=told):
        check_grammar(grammar)


def test_a_rule_for_text_up_to_an_end_is_a_grammar() -> None:
    rules = Rules()
    rules.root(f"{add_until(rules, 'text', '</think>')} {quote('</think>')}")
    check_grammar(rules.text())
