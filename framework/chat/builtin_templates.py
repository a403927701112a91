"""Chat templates that can be named instead of given, for models that bring none (`--chat-template NAME`).

Used by nativeserver.command_line, and by whoever loads a model without a template, which gets `chatml`. The
names and the forms of the prompts are llama-server's; a system text goes where the family wants it.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT = "chatml"


def _turns(start: str, end: str, opening: str) -> str:
    """A template whose turns all look alike; `ROLE` in `start` is the role of the turn."""
    head, _, tail = start.partition("ROLE")
    before, after = (f"{{{{ {part!r} }}}}" if part else "" for part in (head, tail))
    return (
        "{% for message in messages %}"
        f"{before}{{{{ message['role'] }}}}{after}{{{{ message['content'] }}}}{{{{ {end!r} }}}}"
        "{% endfor %}"
        f"{{% if add_generation_prompt %}}{{{{ {opening!r} }}}}{{% endif %}}"
    )


def _named(starts: Mapping[str, str], ends: Mapping[str, str], opening: str, *, trim: bool = True) -> str:
    """A template with texts of its own before and after the turns of each role."""
    content = "message['content'] | trim" if trim else "message['content']"
    return (
        f"{{% set starts = {dict(starts)!r} %}}{{% set ends = {dict(ends)!r} %}}"
        "{% for message in messages %}"
        "{% set role = message['role'] if message['role'] in starts else 'user' %}"
        f"{{{{ starts[role] ~ ({content}) ~ ends[role] }}}}"
        "{% endfor %}"
        f"{{% if add_generation_prompt %}}{{{{ {opening!r} }}}}{{% endif %}}"
    )


# The system text is part of the user's first turn.
_INSTRUCTIONS = (
    "{% set ns = namespace(open=false) %}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ START_SYSTEM ~ message['content'] ~ END_SYSTEM }}"
    "{% set ns.open = true %}"
    "{% elif message['role'] == 'assistant' %}{{ BEFORE_REPLY ~ message['content'] ~ AFTER_REPLY }}"
    "{% else %}{{ ('' if ns.open else START_USER) ~ message['content'] ~ END_USER }}{% set ns.open = false %}"
    "{% endif %}{% endfor %}"
)


def _instructions(**texts: str) -> str:
    template = _INSTRUCTIONS
    for name, text in texts.items():
        template = template.replace(name.upper(), repr(text))
    return template


BUILTIN_TEMPLATES: Mapping[str, str] = {
    "chatml": _turns("<|im_start|>ROLE\n", "<|im_end|>\n", "<|im_start|>assistant\n"),
    "llama2": _instructions(
        start_system="[INST] ",
        end_system="\n",
        before_reply="",
        after_reply="</s>",
        start_user="[INST] ",
        end_user=" [/INST]",
    ),
    "llama2-sys": _instructions(
        start_system="[INST] <<SYS>>\n",
        end_system="\n<</SYS>>\n\n",
        before_reply="",
        after_reply="</s>",
        start_user="[INST] ",
        end_user=" [/INST]",
    ),
    "llama3": _named(
        {role: f"<|start_header_id|>{role}<|end_header_id|>\n\n" for role in ("system", "user", "assistant")},
        dict.fromkeys(("system", "user", "assistant"), "<|eot_id|>"),
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "mistral-v1": _instructions(
        start_system=" [INST] ",
        end_system="\n\n",
        before_reply=" ",
        after_reply="</s>",
        start_user=" [INST] ",
        end_user=" [/INST]",
    ),
    "mistral-v7": _named(
        {"system": "[SYSTEM_PROMPT] ", "user": "[INST] ", "assistant": " "},
        {"system": "[/SYSTEM_PROMPT]", "user": "[/INST]", "assistant": "</s>"},
        "",
        trim=False,
    ),
    "phi3": _turns("<|ROLE|>\n", "<|end|>\n", "<|assistant|>\n"),
    "phi4": _turns("<|im_start|>ROLE<|im_sep|>", "<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
    "zephyr": _turns("<|ROLE|>\n", "<|endoftext|>\n", "<|assistant|>\n"),
    "vicuna": _named(
        {"system": "", "user": "USER: ", "assistant": "ASSISTANT: "},
        {"system": "\n\n", "user": "\n", "assistant": "</s>\n"},
        "ASSISTANT:",
        trim=False,
    ),
    "gemma": (
        "{% set ns = namespace(system='') %}{% for message in messages %}"
        "{% if message['role'] == 'system' %}"
        "{% set ns.system = (message['content'] | trim) ~ '\n\n' %}{% else %}"
        "{{ '<start_of_turn>' ~ ('model' if message['role'] == 'assistant' else 'user') ~ '\n' }}"
        "{% if message['role'] != 'assistant' %}{{ ns.system }}{% set ns.system = '' %}{% endif %}"
        "{{ (message['content'] | trim) ~ '<end_of_turn>\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
    ),
    "command-r": _named(
        {
            role: f"<|START_OF_TURN_TOKEN|><|{token}_TOKEN|>"
            for role, token in (("system", "SYSTEM"), ("user", "USER"), ("assistant", "CHATBOT"))
        },
        dict.fromkeys(("system", "user", "assistant"), "<|END_OF_TURN_TOKEN|>"),
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    ),
    "deepseek3": _named(
        {"system": "", "user": "<\uff5cUser\uff5c>", "assistant": "<\uff5cAssistant\uff5c>"},
        {"system": "\n\n", "user": "", "assistant": "<\uff5cend\u2581of\u2581sentence\uff5c>"},
        "<\uff5cAssistant\uff5c>",
        trim=False,
    ),
}
