"""Flags of the group "chat": how chats become prompts and replies become messages (12 §8)."""

from __future__ import annotations

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.text_files import JSON_OBJECT, TEXT_FILE
from framework.nativeserver.flags.values import Value, choice, on_off_auto, shown, text_value, whole


def _template(text: str) -> str:
    """A template, or the name of one that is built in."""
    if "{" in text:
        return text
    from framework.chat.builtin_templates import BUILTIN_TEMPLATES  # not needed for help and version

    if text not in BUILTIN_TEMPLATES:
        names = ", ".join(BUILTIN_TEMPLATES)
        raise ValueError(
            f"error: the supplied chat template is not supported: {shown(text)}, built in are {names}"
        )
    return BUILTIN_TEMPLATES[text]


TEMPLATE = Value("JINJA_TEMPLATE", _template)

FLAGS: tuple[Flag, ...] = (
    switch(
        "--jinja",
        "chat.jinja",
        "render chats with the template",
        off="--no-jinja",
        default="enabled",
        env="JINJA",
    ),
    valued(
        "--chat-template",
        "chat.template",
        TEMPLATE,
        "template in place of the model's, or the name of a built-in one such as chatml",
        default="the model's",
        env="CHAT_TEMPLATE",
    ),
    valued(
        "--chat-template-file",
        "chat.template",
        TEXT_FILE,
        "file with such a template",
        env="CHAT_TEMPLATE_FILE",
    ),
    valued(
        "--chat-template-kwargs",
        "chat.template_kwargs",
        JSON_OBJECT,
        "further arguments of the template, as a JSON object",
        env="CHAT_TEMPLATE_KWARGS",
    ),
    valued(
        "--reasoning-format",
        "chat.reasoning_format",
        choice("none", "auto", "deepseek", "deepseek-legacy", word="FORMAT"),
        "where reasoning goes: none leaves it in `content`, deepseek moves it to `reasoning_content`,"
        " deepseek-legacy does both, auto decides by the template",
        default="auto",
        env="THINK",
    ),
    valued(
        "-rea --reasoning",
        "chat.reasoning",
        on_off_auto("on", "off", "auto"),
        "reasoning in chats",
        default="auto, by the template",
        env="REASONING",
    ),
    valued(
        "--reasoning-budget",
        "chat.reasoning_budget",
        whole(-1),
        "most tokens of reasoning",
        default="-1, -1 = no limit, 0 = none",
        env="THINK_BUDGET",
    ),
    valued(
        "--reasoning-budget-message",
        "chat.reasoning_budget_message",
        text_value("MESSAGE", may_be_empty=True),
        "text before the end of reasoning when the budget is used up",
        default="none",
        env="THINK_BUDGET_MESSAGE",
    ),
    valued(
        "--reasoning-effort",
        "chat.reasoning_effort",
        choice("none", "minimal", "low", "medium", "high", "xhigh", word="EFFORT"),
        "effort for templates that know it: none, minimal, low, medium, high or xhigh",
        default="the template's",
        env="REASONING_EFFORT",
    ),
    switch(
        "--prefill-assistant",
        "chat.prefill_assistant",
        "go on with a last message of the assistant",
        off="--no-prefill-assistant",
        default="enabled",
        env="PREFILL_ASSISTANT",
    ),
    switch(
        "--skip-chat-parsing",
        "chat.skip_parsing",
        "leave reasoning and tool calls in `content`",
        off="--no-skip-chat-parsing",
        default="disabled",
        env="SKIP_CHAT_PARSING",
    ),
    switch("-sp --special", "engine.special", "show special tokens", default="disabled"),
    switch(
        "--spm-infill",
        "server.spm_infill",
        "infill with suffix, prefix, middle in this order",
        default="disabled",
    ),
)
