"""The facts of a model file as people read them: what each is called, and its value with its unit. Pure.

Takes the JSON of an inspection (13 §3). Used by `paddock inspect` and by the page of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework.values.units_text import counted, size

# What the facts of 13 §3 are called here, and what they count.
FACTS: Mapping[str, tuple[str, str]] = {
    "architecture": ("Architecture", ""),
    "file_type": ("Quantisation", ""),
    "size_label": ("Size label", ""),
    "parameters": ("Parameters", "parameter"),
    "weight_bytes": ("Weights", "byte"),
    "tensors": ("Tensors", "tensor"),
    "layers": ("Layers", "layer"),
    "context_train": ("Trained context", "token"),
    "sliding_window": ("Sliding window", "token"),
    "windowed_layers": ("Layers with a window", "layer"),
    "heads": ("Attention heads", "head"),
    "kv_heads": ("KV heads", "head"),
    "key_length": ("Key length", "element"),
    "value_length": ("Value length", "element"),
    "embedding": ("Embedding", "element"),
    "feed_forward": ("Feed forward", "element"),
    "vocabulary": ("Vocabulary", "token"),
    "tokenizer": ("Tokenizer", ""),
    "experts": ("Experts", "expert"),
    "experts_used": ("Experts at once", "expert"),
    "latent_rank": ("Latent rank", "element"),
    "state_size": ("State size", "element"),
    "prediction_layers": ("Prediction layers", "layer"),
    "diffusion": ("Diffusion", ""),
    "vision": ("Sees pictures", ""),
    "audio": ("Hears sound", ""),
    "projection": ("Projects to", "element"),
    "origin": ("Origin", ""),
}
TEMPLATE: Mapping[str, str] = {
    "present": "Chat template",
    "tools": "Tools",
    "reasoning": "Reasoning",
    "efforts": "Reasoning efforts",
    "always_on": "Reasoning always on",
    "preserve_thinking": "Can keep earlier reasoning",
}
# How a template is told to reason (02 §6).
REASONING = {
    "enable_thinking": "can be switched on and off",
    "enable_thinking_effort": "can be switched on and off, and by effort",
    "reasoning_effort": "by effort",
}


def named_facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values of those that the file holds; a plain no is not worth a line."""
    for key, (name, unit) in FACTS.items():
        value = facts[key]
        if value is None or value is False or value == []:
            continue
        if unit == "byte":
            yield name, size(value)
        else:
            yield name, counted(value, unit) if unit else plain_text(value)


def named_abilities(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the chat template can do."""
    if not template["present"]:
        yield TEMPLATE["present"], "none in the file"
        return
    for key, name in TEMPLATE.items():
        value = template[key]
        if value or key in ("tools", "reasoning"):
            yield name, REASONING.get(value, value) if key == "reasoning" else plain_text(value)


def plain_text(value: Any) -> str:
    """A switch as yes or no, a list with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
