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
    # Without an apostrophe in it, JSON stands in a raw string of Python as it is.
    data = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "\\u0027")
    url = json.dumps(f"{base_url}/v1")
    return (
        f"{before}from openai import OpenAI\n\nclient = OpenAI(base_url={url}, api_key={key})\n"
        f"answer = client.{CREATE[path]}.create(**json.loads(r'''{data}'''))\nprint(answer)\n"
    )
