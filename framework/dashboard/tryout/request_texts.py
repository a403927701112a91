"""A request as people send it elsewhere: for curl, and for OpenAI's client in Python. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from framework.dashboard.tryout.talk import RequestText

KEY_VARIABLE = "PADDOCK_KEY"
CREATE = {"/v1/chat/completions": "chat.completions", "/v1/completions": "completions"}


def request_text(base_url: str, path: str, body: Mapping[str, Any], *, wants_key: bool) -> RequestText:
    """Both texts. A key is named by a variable and never printed."""
    return RequestText(
        _curl(base_url, path, body, wants_key=wants_key), _python(base_url, path, body, wants_key=wants_key)
    )


def _curl(base_url: str, path: str, body: Mapping[str, Any], *, wants_key: bool) -> str:
    key = f' \\\n  -H "Authorization: Bearer ${KEY_VARIABLE}"' if wants_key else ""
    data = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    url = shlex.quote(f"{base_url}{path}")
    return f"curl {url} -H 'Content-Type: application/json'{key} -d '{data}'"


def _python(base_url: str, path: str, body: Mapping[str, Any], *, wants_key: bool) -> str:
    key = f'os.environ["{KEY_VARIABLE}"]' if wants_key else '"none"'
    before = "import json\nimport os\n\n" if wants_key else "import json\n\n"
    # JSON text inside of a raw string would end at a quote; as a literal of a literal it is always right.
    url, data = json.dumps(f"{base_url}/v1"), json.dumps(json.dumps(body))
    return (
        f"{before}from openai import OpenAI\n\nclient = OpenAI(base_url={url}, api_key={key})\n"
        f"answer = client.{CREATE[path]}.create(**json.loads({data}))\nprint(answer)\n"
    )
