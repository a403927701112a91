"""What one setting is called in builds of different times (14 §2). Pure; called by user_flags."""

from __future__ import annotations

from framework.values.engine import Capabilities

# Spellings of one setting, newest first; a flag, or a flag with the value that means the same.
SETTINGS: tuple[tuple[str, ...], ...] = (
    # Drafts of a model, and of n-grams, were limited by one flag before they got one each.
    ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft"),
    ("--spec-ngram-mod-n-max", "--draft-max", "--draft-n", "--draft"),
    ("--spec-draft-n-min", "--draft-min", "--draft-n-min"),
    ("--spec-ngram-mod-n-min", "--draft-min", "--draft-n-min"),
    ("--spec-ngram-mod-n-match", "--spec-ngram-size-n"),
    ("--spec-ngram-simple-size-n", "--spec-ngram-size-n"),
    ("--spec-ngram-simple-size-m", "--spec-ngram-size-m"),
    ("--spec-ngram-simple-min-hits", "--spec-ngram-min-hits"),
    ("--spec-draft-p-split", "--spec--draft-p-split", "--draft-p-split"),
    ("--spec-draft-p-min", "--draft-p-min"),
    ("--spec-draft-model", "--model-draft", "-md"),
    ("--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd"),
    ("--spec-draft-ngl", "--gpu-layers-draft", "--n-gpu-layers-draft", "-ngld"),
    ("--spec-draft-device", "--device-draft", "-devd"),
    ("--spec-draft-type-k", "--cache-type-k-draft", "-ctkd"),
    ("--spec-draft-type-v", "--cache-type-v-draft", "-ctvd"),
    ("--spec-draft-threads", "--threads-draft", "-td"),
    ("--load-mode none", "--no-mmap"),
    ("--load-mode mmap", "--mmap"),
    ("--load-mode mmap", "--no-direct-io", "-ndio"),
    ("--load-mode mlock", "--mlock"),
    ("--load-mode mmap+mlock", "--mlock"),
    ("--load-mode dio", "--direct-io", "-dio"),
    ("--ui", "--webui"),
    ("--no-ui", "--no-webui"),
    ("--ui-config", "--webui-config"),
    ("--ui-config-file", "--webui-config-file"),
    ("--ctx-checkpoints", "--swa-checkpoints", "-ctxcp"),
    ("--flash-attn", "-fa"),
    ("--gpu-layers", "--n-gpu-layers", "-ngl"),
)


def instead_of(flag: str, value: str, caps: Capabilities) -> tuple[str, ...]:
    """What a build has in place of a flag and the value behind it: one spelling for each setting it meant."""
    known = caps.flags | caps.short_flags
    found: dict[str, None] = {}
    for spellings in SETTINGS:
        if flag in spellings or f"{flag} {value}" in spellings:
            others = (one for one in spellings if one.split()[0] in known - {flag})
            found |= dict.fromkeys(list(others)[:1])
    return tuple(found)
