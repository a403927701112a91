"""Rendering of chat templates: what they can use, and that strangers' ones can do no harm."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from framework.chat import template_limits
from framework.chat.builtin_templates import BUILTIN_TEMPLATES, DEFAULT
from framework.chat.template import MAX_SOURCE_CHARS, ChatTemplate, TemplateError
from tests.support.cost import least_cost_s

USER = [{"role": "user", "content": "hi"}]
CHATML = ChatTemplate(BUILTIN_TEMPLATES[DEFAULT])
WITH_TOOLS = """{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}
{%- for message in messages %}<|{{ message.role }}|>
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- message.content }}
{%- for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def _rendered(source: str, **variables: Any) -> str:
    return ChatTemplate(source, bos="<s>", eos="</s>").render(USER, extra=variables)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>hi</s>"),
        ("{% if true %}\n  {% if true %}\nx\n  {% endif %}\n{% endif %}\ny", "x\ny"),
        ("{{ {'a': '<ö>', 'b': [1, none, true]} | tojson }}", '{"a": "<ö>", "b": [1, null, true]}'),
        ("{{ {'a': 1} | tojson(indent=2) }}", '{\n  "a": 1\n}'),
        (
            "{% for x in range(9) %}{% if x == 1 %}{% continue %}{% elif x > 3 %}{% break %}{% endif %}"
            "{{ x }}{% endfor %}",
            "023",
        ),
        ("{% for x in 'abc' %}{{ loop.index }}{{ loop.last }}{% endfor %}", "1False2False3True"),
        ("a{% generation %}b{% endgeneration %}c", "abc"),
        (
            "{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}"
            "{{ ns.n }}",
            "3",
        ),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m('a') ~ m(1) }}", "<a><1>"),
        ("{{ 'a,b'.split(',') | join('-') }}{{ ' x '.strip() }}{{ 'ab'.replace('a', 'c') }}", "a-bxcb"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "1"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{{ '%s-%02d' % ('a', 3) }}{{ '{}'.format(1) }}{{ '%s' | format('b') }}", "a-031b"),
        ("{{ tools is none }}{{ add_generation_prompt }}", "TrueTrue"),
        ("{{ missing }}{{ missing is defined }}{{ messages[0].missing }}", "False"),
    ],
)
def test_templates_can_do_what_tokenizers_offer(source: str, text: str) -> None:
    assert _rendered(source) == text


def test_the_date_is_that_of_here() -> None:
    assert _rendered("{{ strftime_now('%Y') }}") == f"{datetime.datetime.now(datetime.UTC).astimezone():%Y}"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("a\n{{ raise_exception('not so') }}", "not so (line 2 of the chat template)"),
        ("a\n\n{{ 1 / 0 }}", "division by zero (line 3"),
        ("{{ missing.key }}", "'missing' is undefined"),
        ("{{ missing | tojson }}", "not defined"),
        ("{{ messages | tojson(indent=100) }}", "indents by"),
        ("{{ [raise_exception] | tojson }}", "can't write"),
        ("{% include 'other' %}", "no loader"),
    ],
)
def test_an_error_names_its_line(source: str, told: str) -> None:
    with pytest.raises(TemplateError) as raised:
        _rendered(source)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "source", ["{% if %}", "{{ 'a' | center(5) }}", "{{" + "(" * 5000 + ")" * 5000 + "}}"]
)
def test_what_can_not_be_read_is_told_at_once(source: str) -> None:
    with pytest.raises(TemplateError, match="can't be read"):
        ChatTemplate(source)


def test_a_template_may_not_be_endless() -> None:
    with pytest.raises(TemplateError, match="longer than"):
        ChatTemplate("x" * (MAX_SOURCE_CHARS + 1))


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% set x = range(99999) | list %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
        "{{ 'x' * 10**10 }}",
        "{{ [0] * 10**10 }}",
        "{{ 9**9**9 }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=9) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
        "{% set ns = namespace(x={}) %}{% for i in range(99) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}"
        "{% endfor %}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}",
        "{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}",
        "{% set x %}{% for i in range(99999) %}" + "y" * 5000 + "{% endfor %}{% endset %}",
        "{% set x = 'a' * 10**6 %}{{ x.replace('a', 'b' * 10**6) }}",
        "{% set x = 'a' * 10**6 %}{{ x | replace('a', 'b' * 10**6) }}",
        "{% set x = 'a' * 10**7 %}{{ range(9999) | join(x) }}",
        "{% set x = 'a' * 10**7 %}{{ x.join(['b', 'b', 'b', 'b', 'b', 'b']) }}",
        "{{ 'a'.ljust(10**10) }}",
        "{{ 'a'.expandtabs(10**10) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10**9) }}",
        "{{ '%9999999999d' | format(1) }}",
        "{{ 'a' | indent(10**10) }}",
        "{{ 1.5 | round(10**10, 'ceil') }}",
        "{{ [[1]] | sum(start=[]) }}",
        "{{ (1).to_bytes(10**10, 'big') }}",
        "{{ lipsum(10**6) }}",
        "{{ messages.append(1) }}",
        "{{ strftime_now('%Y' * 1000) }}",
    ],
)
def test_a_hostile_template_ends_soon_and_small(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_limits, "MAX_SECONDS", 0.2)

    def refused() -> None:
        with pytest.raises(TemplateError):
            _rendered(source)

    assert least_cost_s(refused, below_s=10) < 10


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ messages.__init__ }}",
        "{{ self._TemplateReference__context }}",
    ],
)
def test_nothing_of_python_is_in_reach(source: str) -> None:
    try:
        assert _rendered(source) == ""
    except TemplateError as error:
        assert "unsafe" in str(error) or "no attribute" in str(error)


def test_conversations_are_never_changed() -> None:
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(TemplateError):
        ChatTemplate("{{ messages[0].update({'role': 'x'}) }}").render(messages)
    assert messages == USER


def test_the_capabilities_of_a_plain_template_are_those_that_llama_server_finds() -> None:
    assert {name for name, has in CHATML.caps.items() if has} == {
        "supports_string_content",
        "supports_system_role",
    }


def test_the_capabilities_of_a_template_with_tools_are_those_that_llama_server_finds() -> None:
    caps = ChatTemplate(WITH_TOOLS).caps
    assert [name for name, has in caps.items() if not has] == ["supports_typed_content"]


def test_parts_and_missing_system_roles_are_found_out() -> None:
    typed = ChatTemplate(
        "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    ).caps
    assert typed["supports_typed_content"]
    assert not typed["supports_string_content"]
    plain = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    assert not ChatTemplate(plain).caps["supports_system_role"]


def test_arguments_as_text_are_told_from_objects() -> None:
    source = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}"
        "{{ c.function.name ~ c.function.arguments }}{% endfor %}{% endfor %}"
    )
    caps = ChatTemplate(source).caps
    assert caps["supports_tool_calls"]
    assert not caps["supports_object_arguments"]


@pytest.mark.parametrize("name", BUILTIN_TEMPLATES)
def test_every_named_template_shows_the_whole_conversation(name: str) -> None:
    messages = [
        *({"role": "system", "content": "S-text"}, {"role": "user", "content": "U1-text"}),
        *({"role": "assistant", "content": "A1-text"}, {"role": "user", "content": "U2-text"}),
    ]
    text = ChatTemplate(BUILTIN_TEMPLATES[name]).render(messages)
    places = [text.index(word) for word in ("S-text", "U1-text", "A1-text", "U2-text")]
    assert places == sorted(places)


def test_chatml_is_what_everybody_knows() -> None:
    assert CHATML.render(USER) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert CHATML.render(USER, add_generation_prompt=False) == "<|im_start|>user\nhi<|im_end|>\n"
