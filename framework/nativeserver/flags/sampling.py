"""Flags of the group "sampling": defaults of fields that requests may set (12 §5.2)."""

from __future__ import annotations

import re

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.text_files import parse_json, read_text
from framework.nativeserver.flags.values import UINT32_MAX, Value, number, shown, whole

SAMPLERS = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
    "adaptive_p",
)
OTHER_NAMES = {
    "nucleus": "top_p",
    "typical": "typ_p",
    "typical_p": "typ_p",
    "typ": "typ_p",
    "temp": "temperature",
    "adaptive": "adaptive_p",
}
LETTERS = "edskypmxta"
BIAS = re.compile(r"(?P<token>[0-9]{1,10})(?P<bias>[+-].{1,40})")


def _sampler(text: str) -> str:
    name = text.strip().replace("-", "_")
    name = OTHER_NAMES.get(name, name)
    if name not in SAMPLERS:
        raise ValueError(f"unknown sampler {shown(text)}, allowed are {', '.join(SAMPLERS)}")
    return name


def _chain(text: str) -> list[str]:
    return [_sampler(part) for part in text.split(";")] if text else []


def _letters(text: str) -> str:
    if any(letter not in LETTERS for letter in text):
        raise ValueError(f"expected letters of '{LETTERS}', found {shown(text)}")
    return text


def _bias(text: str) -> tuple[tuple[int, float | bool], ...]:
    """As a request says it: False forbids the token."""
    match = BIAS.fullmatch(text)
    if match is None:
        raise ValueError(f"expected TOKEN_ID+BIAS or TOKEN_ID-BIAS, found {shown(text)}")
    token = int(whole(0).read(match["token"]))
    return ((token, False if match["bias"] == "-inf" else float(number().read(match["bias"]))),)


def _single(text: str) -> tuple[str, ...]:
    if not text:
        raise ValueError("the text is empty")
    return (text,)


# A constraint is a field of requests and its value, so that the last one counts, of whichever kind.
GRAMMAR = Value("GRAMMAR", lambda text: ("grammar", text))
GRAMMAR_FILE = Value("FNAME", lambda name: ("grammar", read_text(name)))
SCHEMA = Value("SCHEMA", lambda text: ("json_schema", parse_json(text)))
SCHEMA_FILE = Value("FNAME", lambda name: ("json_schema", parse_json(read_text(name))))

FLAGS: tuple[Flag, ...] = (
    valued(
        "-n --predict --n-predict",
        "line.n_predict",
        whole(-1),
        "most tokens of an answer",
        default="-1, -1 = no limit",
        env="N_PREDICT",
    ),
    valued(
        "--samplers",
        "request.samplers",
        Value("SAMPLERS", _chain),
        "chain of samplers, separated by ';'",
        default="penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
    ),
    valued(
        "--sampler-seq --sampling-seq",
        "request.samplers",
        Value("SEQUENCE", _letters),
        "the same by letters",
        default="edskypmxt",
    ),
    valued(
        "-s --seed",
        "request.seed",
        whole(-1, UINT32_MAX, "SEED"),
        "start of the random numbers",
        default="-1, -1 = random",
    ),
    switch("--ignore-eos", "request.ignore_eos", "go on behind the end of the answer", default="disabled"),
    valued("--temp --temperature", "request.temperature", number(0), "temperature", default="0.80"),
    valued(
        "--top-k",
        "request.top_k",
        whole(0),
        "most likely tokens to choose from",
        default="40, 0 = all",
        env="TOP_K",
    ),
    valued(
        "--top-p",
        "request.top_p",
        number(0, 1),
        "share of probability to choose from",
        default="0.95, 1.0 = all",
    ),
    valued(
        "--min-p",
        "request.min_p",
        number(0, 1),
        "least probability, relative to the best token",
        default="0.05, 0.0 = any",
    ),
    valued(
        "--top-nsigma --top-n-sigma",
        "request.top_n_sigma",
        number(),
        "standard deviations below the best token",
        default="-1.00, -1.0 = off",
    ),
    valued(
        "--xtc-probability",
        "request.xtc_probability",
        number(0, 1),
        "how often XTC drops the best tokens",
        default="0.00, 0.0 = never",
    ),
    valued(
        "--xtc-threshold",
        "request.xtc_threshold",
        number(0, 1),
        "probability above which XTC drops",
        default="0.10, 1.0 = off",
    ),
    valued(
        "--typical --typical-p",
        "request.typical_p",
        number(0, 1),
        "locally typical sampling",
        default="1.00, 1.0 = off",
    ),
    valued(
        "--repeat-last-n",
        "request.repeat_last_n",
        whole(-1),
        "tokens that penalties look back",
        default="64, 0 = off, -1 = context",
    ),
    valued(
        "--repeat-penalty",
        "request.repeat_penalty",
        number(0),
        "penalty of repeated tokens",
        default="1.00, 1.0 = off",
    ),
    valued(
        "--presence-penalty",
        "request.presence_penalty",
        number(),
        "penalty of tokens that occurred",
        default="0.00, 0.0 = off",
    ),
    valued(
        "--frequency-penalty",
        "request.frequency_penalty",
        number(),
        "penalty by number of occurrences",
        default="0.00, 0.0 = off",
    ),
    valued(
        "--dry-multiplier", "request.dry_multiplier", number(0), "strength of DRY", default="0.00, 0.0 = off"
    ),
    valued(
        "--dry-base",
        "request.dry_base",
        number(1),
        "growth of DRY with the length of a repetition",
        default="1.75",
    ),
    valued(
        "--dry-allowed-length",
        "request.dry_allowed_length",
        whole(0),
        "length that DRY lets pass",
        default="2",
    ),
    valued(
        "--dry-penalty-last-n",
        "request.dry_penalty_last_n",
        whole(-1),
        "tokens that DRY looks back",
        default="-1, 0 = off, -1 = context",
    ),
    valued(
        "--dry-sequence-breaker",
        "line.breakers",
        Value("STRING", _single),
        "text that ends a repetition for DRY, in place of the default ones; 'none' for no such text",
        default=r"\n : \" *",
        collects=True,
    ),
    valued(
        "--adaptive-target",
        "request.adaptive_target",
        number(-1, 1),
        "adaptive-p: probability to stay near",
        default="-1.00, negative = off",
    ),
    valued(
        "--adaptive-decay",
        "request.adaptive_decay",
        number(0, 0.99),
        "adaptive-p: how slowly the target adapts",
        default="0.90",
    ),
    valued(
        "--dynatemp-range",
        "request.dynatemp_range",
        number(0),
        "range of dynamic temperature",
        default="0.00, 0.0 = off",
    ),
    valued(
        "--dynatemp-exp",
        "request.dynatemp_exponent",
        number(0),
        "exponent of dynamic temperature",
        default="1.00",
    ),
    valued(
        "--mirostat",
        "request.mirostat",
        whole(0, 2),
        "Mirostat in place of top-k, top-p and typical sampling",
        default="0, 0 = off, 1 and 2 = version",
    ),
    valued("--mirostat-lr", "request.mirostat_eta", number(0), "Mirostat: learning rate", default="0.10"),
    valued("--mirostat-ent", "request.mirostat_tau", number(0), "Mirostat: target entropy", default="5.00"),
    valued(
        "-l --logit-bias",
        "request.logit_bias",
        Value("TOKEN_ID(+/-)BIAS", _bias),
        "make a token likelier or less likely; -inf forbids it",
        collects=True,
    ),
    valued("--grammar", "line.constraint", GRAMMAR, "grammar in GBNF that answers follow"),
    valued("--grammar-file", "line.constraint", GRAMMAR_FILE, "file with such a grammar"),
    valued(
        "-j --json-schema",
        "line.constraint",
        SCHEMA,
        "JSON schema that answers follow, such as {} for any object",
    ),
    valued("-jf --json-schema-file", "line.constraint", SCHEMA_FILE, "file with such a schema"),
    switch(
        "-bs --backend-sampling",
        "request.backend_sampling",
        "accepted; tokens are always chosen on the host",
        default="disabled",
        env="BACKEND_SAMPLING",
    ),
    valued(
        "-r --reverse-prompt",
        "line.stops",
        Value("TEXT", _single),
        "text at which answers end",
        collects=True,
    ),
    switch(
        "-e --escape",
        "line.escape",
        r"read \n, \r, \t, \', \" and \\ in texts of the two flags above",
        off="--no-escape",
        default="enabled",
    ),
    valued(
        "--embd-normalize",
        "request.embd_normalize",
        whole(-1, 1024),
        "norm of embeddings",
        default="2, -1 = none, 0 = largest int16, 1 = taxicab, 2 = euclidean, above = p-norm",
    ),
)
