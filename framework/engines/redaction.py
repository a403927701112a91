"""Hide secrets before a command line or an environment is logged, shown or recorded (06 §15). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from framework.values.plan import REDACTED

SECRET_FLAGS = frozenset({"--api-key", "--hf-token", "-hft"})
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD")
# In running text: a secret flag with its value, and a variable of such a name that is given one. Names are
# bounded: strangers write the text, and it is to be gone through once.
SECRETS_IN_TEXT = re.compile(
    r"(?P<flag>(?<![\w-])(?:--api[-_]key|--hf[-_]token|-hft)(?:=|[ \t]+)[\"']?)[^\s\"']+"
    r"|(?P<name>(?i:\b\w{0,64}(?:" + "|".join(SECRET_WORDS) + r")\w{0,64}=[\"']?))[^\s\"']+"
)


def redact_argv(tokens: Sequence[str]) -> tuple[str, ...]:
    """The tokens with every value of a secret flag hidden, `=` forms included; a trailing bare flag stays."""
    shown: list[str] = []
    hide_next = False
    for token in tokens:
        flag, equals, _ = token.partition("=")
        if hide_next:
            shown.append(REDACTED)
            hide_next = False
        elif flag.replace("_", "-") in SECRET_FLAGS:
            shown.append(f"{flag}={REDACTED}" if equals else token)
            hide_next = not equals
        else:
            shown.append(token)
    return tuple(shown)


def redact_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with the value of every name that sounds like a secret hidden."""
    return {name: REDACTED if is_secret_name(name) else value for name, value in env.items()}


def redact_text(text: str) -> str:
    """Running text with the values of secret flags and of variables that sound like secrets hidden."""
    return SECRETS_IN_TEXT.sub(lambda found: f"{found['flag'] or found['name']}{REDACTED}", text)


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable of this name is never shown."""
    upper = name.upper()
    return any(word in upper for word in SECRET_WORDS)
