"""Flags of llama-server that change nothing here (12 §19.2), that are refused (§19.3), and that it removed
itself (§19.4)."""

from __future__ import annotations

from framework.nativeserver.flags.device import MOST_LAYERS
from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.pairs import PLACEMENTS
from framework.nativeserver.flags.values import Value, text_value, whole

ANY = text_value("VALUE", may_be_empty=True)
DRAFT_REPOSITORY_TARGET = "line.draft_repository"


def _ignored(
    names: str, why: str, value: Value | None = ANY, off: str = "", env: str = "", target: str = ""
) -> Flag:
    text, negations = f"no effect here: {why}", tuple(off.split())
    return Flag(tuple(names.split()), text, target, value, negations, env=env, role="ignored")


def _refused(names: str, why: str, env: str = "") -> Flag:
    return Flag(tuple(names.split()), why, "", None, env=env, role="refused")


def _removed(names: str, instead: str, env: str = "") -> Flag:
    text = f"the argument has been removed. use {instead}"
    return Flag(tuple(names.split()), text, "", Value("N", str), env=env, role="removed")


HTTP = "the HTTP server has one thread"
PLACES = "the operating system places threads"
PERF = "timings are always taken"
UI = "there is no web page"
MEDIA = "this build has no media support"
DRAFTS = "drafts are drawn on the host"
DRAFTER = "a draft model is placed as a whole"
OFFLINE = "this engine downloads nothing"

IGNORED: tuple[Flag, ...] = (
    _ignored("--threads-http", HTTP, env="THREADS_HTTP"),
    _ignored("-C --cpu-mask", PLACES),
    _ignored("-Cr --cpu-range", PLACES),
    _ignored("--cpu-strict", PLACES),
    _ignored("--prio", PLACES),
    _ignored("--poll", PLACES),
    _ignored("-Cb --cpu-mask-batch", PLACES),
    _ignored("-Crb --cpu-range-batch", PLACES),
    _ignored("--cpu-strict-batch", PLACES),
    _ignored("--prio-batch", PLACES),
    _ignored("--poll-batch", PLACES),
    _ignored("--perf", PERF, None, "--no-perf", "PERF"),
    _ignored("-dt --defrag-thold", "the cache is never defragmented", env="DEFRAG_THOLD"),
    _ignored("--ui --webui", UI, None, "--no-ui --no-webui", "UI"),
    _ignored("--ui-config --webui-config", UI, env="UI_CONFIG"),
    _ignored("--ui-config-file --webui-config-file", UI, env="UI_CONFIG_FILE"),
    _ignored("--path", UI, env="STATIC_PATH"),
    _ignored("--offline", OFFLINE, None, env="OFFLINE"),
    _ignored("--mmproj-auto", MEDIA, None, "--no-mmproj --no-mmproj-auto", "MMPROJ_AUTO"),
    _ignored("--mmproj-offload", MEDIA, None, "--no-mmproj-offload", "MMPROJ_OFFLOAD"),
    _ignored("--media-path", MEDIA),
    _ignored("--image-min-tokens", MEDIA, env="IMAGE_MIN_TOKENS"),
    _ignored("--image-max-tokens", MEDIA, env="IMAGE_MAX_TOKENS"),
    _ignored("--mtmd-batch-max-tokens", MEDIA, env="MTMD_BATCH_MAX_TOKENS"),
    _ignored(
        "--reasoning-preserve", "the template decides", None, "--no-reasoning-preserve", "REASONING_PRESERVE"
    ),
    _ignored("--log-prompts-dir", "LLAMA_SERVER_SLOTS_DEBUG=1 shows prompts in GET /slots"),
    _ignored(
        "--spec-draft-backend-sampling",
        DRAFTS,
        None,
        "--no-spec-draft-backend-sampling",
        "SPEC_DRAFT_BACKEND_SAMPLING",
    ),
    _ignored("--spec-draft-cpu-mask -Cd --cpu-mask-draft", PLACES),
    _ignored("--spec-draft-cpu-range -Crd --cpu-range-draft", PLACES),
    _ignored("--spec-draft-cpu-strict --cpu-strict-draft", PLACES),
    _ignored("--spec-draft-prio --prio-draft", PLACES),
    _ignored("--spec-draft-poll --poll-draft", PLACES),
    _ignored("--spec-draft-cpu-mask-batch -Cbd --cpu-mask-batch-draft", PLACES),
    _ignored("--spec-draft-cpu-strict-batch --cpu-strict-batch-draft", PLACES),
    _ignored("--spec-draft-prio-batch --prio-batch-draft", PLACES),
    _ignored("--spec-draft-poll-batch --poll-batch-draft", PLACES),
    _ignored("--spec-draft-override-tensor -otd --override-tensor-draft", DRAFTER, PLACEMENTS),
    _ignored("--spec-draft-cpu-moe -cmoed --cpu-moe-draft", DRAFTER, None, env="SPEC_DRAFT_CPU_MOE"),
    _ignored(
        "--spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft",
        DRAFTER,
        whole(0, MOST_LAYERS),
        env="SPEC_DRAFT_N_CPU_MOE",
    ),
    _ignored(
        "--spec-draft-hf -hfd -hfrd --hf-repo-draft",
        f"{OFFLINE}; give a local file with --spec-draft-model",
        env="SPEC_DRAFT_HF_REPO",
        target=DRAFT_REPOSITORY_TARGET,
    ),
)

DOWNLOADS = "this engine downloads nothing; give a local file with --model"
ROUTING = "this server has one model; `paddock up` serves many"
AGENTS = "this server runs no tools"
REMOTE = "this build uses no remote devices; use llama-server for them"
CONTROL = "this engine has no control vectors; use llama-server for them"
VOICE = "this engine makes no sound; use llama-tts"
READY_MADE = (
    "--embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default --fim-qwen-7b-default"
    " --fim-qwen-7b-spec --fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default"
    " --gpt-oss-120b-default --vision-gemma-4b-default --vision-gemma-12b-default"
)

REFUSED: tuple[Flag, ...] = (
    _refused("-mu --model-url", DOWNLOADS, "MODEL_URL"),
    _refused("-hf -hfr --hf-repo", DOWNLOADS, "HF_REPO"),
    _refused("-hff --hf-file", DOWNLOADS, "HF_FILE"),
    _refused("-hfv -hfrv --hf-repo-v", DOWNLOADS, "HF_REPO_V"),
    _refused("-hffv --hf-file-v", DOWNLOADS, "HF_FILE_V"),
    _refused("-hft --hf-token", DOWNLOADS),
    _refused("-dr --docker-repo", DOWNLOADS, "DOCKER_REPO"),
    _refused("-mmu --mmproj-url", MEDIA, "MMPROJ_URL"),
    _refused(READY_MADE, DOWNLOADS),
    _refused("-cl --cache-list", DOWNLOADS),
    _refused("--completion-bash", "there is no completion for this command"),
    _refused("--models-dir", ROUTING, "MODELS_DIR"),
    _refused("--models-preset", ROUTING, "MODELS_PRESET"),
    _refused("--models-max", ROUTING, "MODELS_MAX"),
    _refused("--models-autoload --no-models-autoload", ROUTING, "MODELS_AUTOLOAD"),
    _refused("--tools", AGENTS, "TOOLS"),
    _refused("-ag --agent -no-ag --no-agent", AGENTS, "AGENT"),
    _refused(
        "--ui-mcp-proxy --webui-mcp-proxy --no-ui-mcp-proxy --no-webui-mcp-proxy", AGENTS, "UI_MCP_PROXY"
    ),
    _refused("--rpc", REMOTE, "RPC"),
    _refused("--control-vector", CONTROL),
    _refused("--control-vector-scaled", CONTROL),
    _refused("--control-vector-layer-range", CONTROL),
    _refused("-mv --model-vocoder", VOICE),
    _refused("--tts-use-guide-tokens", VOICE),
)

REMOVED: tuple[Flag, ...] = (
    _removed("--draft --draft-n --draft-max", "--spec-draft-n-max or --spec-ngram-mod-n-max", "DRAFT_MAX"),
    _removed("--draft-min --draft-n-min", "--spec-draft-n-min or --spec-ngram-mod-n-min", "DRAFT_MIN"),
    _removed("--spec-ngram-size-n", "the --spec-ngram-*-size-n of the type, or --spec-ngram-mod-n-match"),
    _removed("--spec-ngram-size-m", "the --spec-ngram-*-size-m of the type"),
    _removed("--spec-ngram-min-hits", "the --spec-ngram-*-min-hits of the type"),
)
