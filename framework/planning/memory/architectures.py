"""Architectures whose plans were compared with the engine's own, buffer by buffer. Pure.

Their lines are `computed`. Others are built from the same parts, which is likely right and no more: their
lines are `assumed`, with a margin.
"""

from __future__ import annotations

DENSE = frozenset(
    {
        "apertus",
        "arcee",
        "baichuan",
        "bitnet",
        "bloom",
        "chatglm",
        "codeshell",
        "command-r",
        "deci",
        "ernie4_5",
    }
    | {"exaone", "falcon", "gemma", "glm4", "gpt2", "gptneox", "granite", "hunyuan-dense", "hunyuan_vl"}
    | {
        "internlm2",
        "jais",
        "jais2",
        "llama",
        "maincoder",
        "minicpm",
        "minicpm3",
        "mistral3",
        "mpt",
        "nemotron",
    }
    | {"olmo", "olmo2", "openelm", "orion", "paddleocr", "pangu-embedded", "phi2", "phi3", "plamo", "qwen2"}
    | {"qwen2vl", "qwen3", "qwen3vl", "refact", "seed_oss", "smollm3", "stablelm", "starcoder", "starcoder2"}
    | {"xverse"}
)
EXPERTS = frozenset(
    {
        "arctic",
        "bailingmoe",
        "bailingmoe2",
        "dbrx",
        "deepseek",
        "deepseek2",
        "dots1",
        "ernie4_5-moe",
        "glm-dsa",
    }
    | {"glm4moe", "granitemoe", "hunyuan-moe", "mellum", "minimax-m2", "mistral4", "olmoe", "phimoe"}
    | {"qwen2moe", "qwen3moe", "qwen3vlmoe"}
)
WINDOWED = frozenset(
    {"afmoe", "cohere2", "cohere2moe", "exaone-moe", "exaone4", "gemma2", "gemma3", "gemma3n", "gemma4"}
    | {"gpt-oss", "llama4", "mimo2", "smallthinker", "step35"}
)
RECURRENT = frozenset(
    {"falcon-h1", "granitehybrid", "jamba", "kimi-linear", "lfm2", "lfm2moe", "mamba", "mamba2", "nemotron_h"}
    | {"nemotron_h_moe", "plamo2", "qwen35", "qwen35moe", "qwen3next", "rwkv6", "rwkv7"}
)
WITHOUT_CACHE = frozenset(
    {"bert", "dream", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llada", "llada-moe"}
    | {"llama-embed", "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe"}
    | {"rnd1"}
)
MEASURED_ARCHITECTURES = DENSE | EXPERTS | WINDOWED | RECURRENT | WITHOUT_CACHE
