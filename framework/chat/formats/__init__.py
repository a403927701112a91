"""How the families of models write reasoning and calls, told by the chat template (12 §8.2).

Called by nativeserver.chat_request and by chat.reply.
"""

from framework.chat.formats.base import ReadOptions, ReplyFormat, Sink, ToolGrammar, Trigger
from framework.chat.formats.detection import CONTENT_ONLY, detect_format

__all__ = ["CONTENT_ONLY", "ReadOptions", "ReplyFormat", "Sink", "ToolGrammar", "Trigger", "detect_format"]
