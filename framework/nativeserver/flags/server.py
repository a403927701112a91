"""Flags of the group "server": address, access and routes."""

from __future__ import annotations

from pathlib import Path

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.text_files import KEY_FILE
from framework.nativeserver.flags.values import Value, text_list, text_value, whole

FILE = Value("FNAME", Path)
LONGEST_TIME_S = 10**8


def _prefix(text: str) -> str:
    prefix = text.rstrip("/")
    if prefix and (not prefix.startswith("/") or any(char in prefix for char in "?#%\\ ")):
        raise ValueError("expected a path such as /engine")
    return prefix


FLAGS: tuple[Flag, ...] = (
    valued(
        "--host",
        "server.host",
        text_value("HOST"),
        "address to listen on; a path that ends with .sock is a UNIX socket",
        default="127.0.0.1",
        env="HOST",
    ),
    valued(
        "--port",
        "server.port",
        whole(0, 65535, "PORT"),
        "port to listen on",
        default="8080, 0 = any free one",
        env="PORT",
    ),
    switch(
        "--reuse-port",
        "server.reuse_port",
        "let other processes listen on the same port",
        default="disabled",
        env="REUSE_PORT",
    ),
    valued(
        "--api-prefix",
        "server.api_prefix",
        Value("PREFIX", _prefix),
        "path before every route",
        default="none",
        env="API_PREFIX",
    ),
    valued(
        "--api-key",
        "server.api_keys",
        text_list("KEY,..."),
        "keys that clients may use",
        default="none",
        env="LLAMA_API_KEY",
        collects=True,
        adds_to_environment=True,
    ),
    valued(
        "--api-key-file",
        "server.api_keys",
        KEY_FILE,
        "file with one key a line; lines with # are comments",
        env="API_KEY_FILE",
        collects=True,
        adds_to_environment=True,
    ),
    valued("--ssl-key-file", "server.ssl_key_file", FILE, "private key for TLS, in PEM", env="SSL_KEY_FILE"),
    valued(
        "--ssl-cert-file", "server.ssl_cert_file", FILE, "certificate for TLS, in PEM", env="SSL_CERT_FILE"
    ),
    valued(
        "--cors-origins",
        "cors.origins",
        text_value("ORIGINS"),
        "origins of web pages that may use the server; 'localhost' for those of this machine",
        default="*",
        env="CORS_ORIGINS",
    ),
    valued(
        "--cors-methods",
        "cors.methods",
        text_value("METHODS"),
        "methods for web pages",
        default="GET, POST, DELETE, OPTIONS",
        env="CORS_METHODS",
    ),
    valued(
        "--cors-headers",
        "cors.headers",
        text_value("HEADERS"),
        "headers for web pages",
        default="*",
        env="CORS_HEADERS",
    ),
    switch(
        "--cors-credentials",
        "cors.credentials",
        "let web pages send credentials",
        off="--no-cors-credentials",
        default="enabled",
        env="CORS_CREDENTIALS",
    ),
    valued(
        "-to --timeout",
        "server.timeout_s",
        whole(1, LONGEST_TIME_S),
        "seconds that a read or write may take",
        default="3600",
        env="TIMEOUT",
    ),
    valued(
        "--sse-ping-interval",
        "server.sse_ping_interval_s",
        whole(-1, LONGEST_TIME_S),
        "seconds of silence in a stream before a ping",
        default="30, -1 = never",
        env="SSE_PING_INTERVAL",
    ),
    switch(
        "--metrics",
        "server.metrics",
        "serve GET /metrics for Prometheus",
        default="disabled",
        env="ENDPOINT_METRICS",
    ),
    switch("--props", "server.props", "serve POST /props", default="disabled", env="ENDPOINT_PROPS"),
    switch(
        "--slots",
        "server.slots",
        "serve GET /slots",
        off="--no-slots",
        default="enabled",
        env="ENDPOINT_SLOTS",
    ),
    switch(
        "--embedding --embeddings",
        "server.embeddings",
        "serve embeddings",
        default="disabled",
        env="EMBEDDINGS",
    ),
    switch(
        "--rerank --reranking", "server.reranking", "serve reranking", default="disabled", env="RERANKING"
    ),
    valued(
        "--sleep-idle-seconds",
        "engine.sleep_idle_s",
        whole(-1, LONGEST_TIME_S, "SECONDS"),
        "seconds without work after which the model leaves the devices",
        default="-1, -1 = never",
    ),
    switch(
        "--sleep-keep-cache",
        "engine.sleep_keep_cache",
        "keep prompts in host memory meanwhile",
        off="--no-sleep-keep-cache",
        default="enabled",
        env="SLEEP_KEEP_CACHE",
    ),
    switch(
        "--warmup", "engine.warmup", "decode one token after loading", off="--no-warmup", default="enabled"
    ),
)
