"""The OpenAI-compatible endpoint: routing, access, streaming, cancel, retry, errors (08)."""
