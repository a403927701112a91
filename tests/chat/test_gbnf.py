"""Writing of grammars, and the check of those that others wrote."""

from __future__ import annotations

import string
from collections.abc import Iterable

import pytest

from framework.chat.gbnf import MAX_GRAMMAR_CHARS, GrammarError, Rules, add_until, char_class, quote, repeat
from framework.chat.gbnf_check import MAX_DEPTH, MAX_RULES, check_grammar
from tests.support.cost import least_cost_s


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
        # Read in a few ways, or in many that don't double.
        'root ::= (word " "?)+\nword ::= [a-z]+',
        'root ::= s\ns ::= "(" s ")" | "(" ")"',
        "root ::= " + '" "? ' * 10,
        'root ::= (expr "=" ws term "\\n")+\nexpr ::= term ([-+*/] term)*\n'
        'term ::= [a-z]+ ws | [0-9]+ ws | "(" ws expr ")" ws\nws ::= [ \\t\\n]*',
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
        ('root ::= ("a"?)* "b"', "can be empty"),
        ('root ::= "a"{2000}', "counts in rising order"),
        # The engine's parser never comes back from this one.
        ('root ::= ("a"){3,2}', "counts in rising order"),
        ('root ::= "\\q"', "known escapes"),
        ('root ::= "a\nb"', "line 1"),
        ("root ::= " + "(" * (MAX_DEPTH + 1), "nested deeper"),
        ('root ::= "a"\n\nroot_x ::= "b"', "line 3"),
        ('root ::= "a\0"', "NUL"),
        ('root ::= "' + "abc" * 100 + '"{1999}', "elements"),
        ("x" * (MAX_GRAMMAR_CHARS + 1), "bytes"),
        ("root ::= " + '"a"? ' * MAX_RULES, "rules"),
        ("".join(f'r{at} ::= "a"\n' for at in range(MAX_RULES + 1)), "rules"),
    ],
)
def test_grammars_that_would_hurt_are_refused(grammar: str, told: str) -> None:
    with pytest.raises(GrammarError, match=told):
        check_grammar(grammar)


def chained(body: str, last: str, levels: int = 30) -> str:
    """Rules, each of which uses the next one."""
    rules = (f"a{at} ::= {body.replace('NEXT', f'a{at + 1}')}\n" for at in range(levels))
    return f"root ::= a0\n{''.join(rules)}a{levels} ::= {last}\n"


@pytest.mark.parametrize(
    "grammar",
    [
        pytest.param(chained('NEXT "x" | NEXT "y"', '"z"'), id="two calls at the start"),
        pytest.param(chained('NEXT "x"? | NEXT "y"?', '""'), id="all of it may be empty"),
        pytest.param(chained('NEXT NEXT | "x"', '"x"*', levels=8), id="twice what repeats"),
        pytest.param("root ::= " + '" "? ' * 24, id="blanks that may be left out"),
        pytest.param("root ::= " + '"a"? ' * 400, id="letters that may be left out"),
        pytest.param('root ::= s\ns ::= "x" s "y" | "x" s "z" | "x"', id="two ways back"),
        pytest.param("root ::= " + "[a-z]{0,1999} " * 4, id="counts behind counts"),
        pytest.param('root ::= ("abcdef" s)+\ns ::= "x" s "y" | "x" s [yz] | "x"', id="behind other text"),
    ],
)
def test_grammars_that_read_a_text_in_too_many_ways_are_refused_soon(grammar: str) -> None:
    def refused() -> None:
        with pytest.raises(GrammarError, match=r"ways|ambiguous"):
            check_grammar(grammar)

    assert least_cost_s(refused, below_s=10) < 10


def loop_of(alternatives: Iterable[str]) -> str:
    return f"root ::= ({' | '.join(alternatives)})*"


HAN = [chr(0x4E00 + 2 * at) for at in range(8000)]


@pytest.mark.parametrize(
    "grammar",
    [
        pytest.param(loop_of(f"[{one}]" for one in HAN[:100]), id="100 characters"),
        pytest.param(loop_of(f"[{one}]" for one in HAN), id="8000 characters"),
        pytest.param(loop_of(f'"{one}"' for one in string.ascii_letters), id="letters"),
        pytest.param(f"root ::= [{''.join(HAN)}]*", id="a class of many ranges"),
        pytest.param(f"root ::= [^{''.join(HAN)}]", id="all but many ranges"),
        pytest.param("root ::= " + " | ".join(f'"x{at}"' for at in range(1000)), id="alternatives"),
        pytest.param(f"root ::= a a a a\na ::= {' | '.join(map(quote, HAN[:100]))}", id="rules in a row"),
        pytest.param(f"root ::= {' '.join(f'[{one}]?' for one in HAN[:500])} [a]", id="left out"),
    ],
)
def test_grammars_that_the_engine_would_be_slow_with_are_refused(grammar: str) -> None:
    with pytest.raises(GrammarError, match=r"seconds that are allowed|ways to read"):
        check_grammar(grammar)


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= [a-z]+ | [0-9]+",
        loop_of(f'"{one}"' for one in string.digits),
        "root ::= " + " | ".join(f'"{one}"' for one in string.ascii_letters),
        "root ::= " + " | ".join(f'"x{at}"' for at in range(200)),
        f"root ::= [{''.join(HAN[:1000])}]+",
        f"root ::= {' | '.join(map(quote, HAN[:200]))}",
    ],
)
def test_grammars_of_some_alternatives_and_ranges_pass(grammar: str) -> None:
    check_grammar(grammar)


def test_many_rules_that_may_be_empty_take_time_in_the_order_of_their_number() -> None:
    grammar = "".join(f"r{at} ::= | r{at + 1}\n" for at in range(4000)) + 'r4000 ::= ""\nroot ::= "a" r0'
    assert least_cost_s(lambda: check_grammar(grammar), below_s=5) < 5


def test_a_rule_for_text_up_to_an_end_is_a_grammar() -> None:
    rules = Rules()
    rules.root(f"{add_until(rules, 'text', '</think>')} {quote('</think>')}")
    check_grammar(rules.text())
