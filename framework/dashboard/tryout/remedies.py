"""What to do about each error of the endpoint, in a sentence for whoever reads the page Try. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.dashboard.tryout.talk import Trouble

REMEDIES: Mapping[str, str] = {
    "key_missing": "Sign in again; the conversation stays on this page.",
    "key_invalid": "Sign in again; the conversation stays on this page.",
    "csrf_token_invalid": "Open this page anew.",
    "invalid_body": "Correct what it names and send the message again.",
    "body_too_large": "Begin a new conversation, or raise server.max_body.",
    "model_not_allowed": "Choose another model, or add this one to the models of the key in [access].",
    "model_not_found": "Choose one of the models in the list.",
    "tools_not_supported": "Leave the tools out, or choose a model whose chat template knows them.",
    "not_supported": "Choose a model that generates text.",
    "context_length_exceeded": "Begin a new conversation, shorten the message, or raise the model's context.",
    "rate_limited": "Wait, or raise the limit of the key in [access].",
    "concurrency_limited": "Wait for an answer that is under way, or raise the limit of the key in [access].",
    "tokens_limited": "Wait, or raise the limit of the key in [access].",
    "model_load_failed": "The page of the model says why and what to do.",
    "model_not_loaded": "Load it on its page.",
    "model_loading": "Send the message again; the load goes on meanwhile.",
    "model_unloaded": "Send the message again, or load the model on its page.",
    "instance_replaced": "Send the message again.",
    "instance_restarting": "Send the message again in a moment; the page of the model says why it ended.",
    "queue_full": "Wait until others are answered, or raise max_queue of the model.",
    "server_busy": "Wait a moment and send the message again.",
    "shutting_down": "Send the message again when the server is back.",
    "no_memory": "Unload another model; the page Pools shows who holds the memory.",
    "connection_lost": "Send the message again; the log on the page of the model may say what happened.",
    "connection_failed": "Look whether the server still runs, and send the message again.",
    "stream_truncated": "Send the message again; the log on the page of the model may say what happened.",
    "stream_interrupted": "Send the message again; the log on the page of the model may say what happened.",
    "connect_timeout": "The engine takes no connection; its log is on the page of the model.",
    "first_token_timeout": "Shorten the prompt, or raise timeout.first_token of the model.",
    "stream_stalled": "Send the message again; if it happens often, raise timeout.stall of the model.",
    "cancelled": "Send the message again for a new answer.",
    "internal_error": "The log of Paddock has the details.",
}
OTHER = "The page of the model and the events may say more."


def trouble_of(error: Mapping[str, Any], retry_after: str | None) -> Trouble:
    """An error object of the endpoint (13 §7), with what to do. Its own reason knows more than the code."""
    code, message = (
        str(error.get("code") or "internal_error"),
        str(error.get("message") or "No reason given."),
    )
    found = error.get("reason")
    reason: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    remedy = str(reason.get("remedy") or REMEDIES.get(code, OTHER))
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        remedy = f"{remedy} It may work again in {retry_after} s."
    return Trouble(code, message, remedy, str(reason.get("code") or ""))
