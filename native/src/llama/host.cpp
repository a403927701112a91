#include "llama/host.h"

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <string_view>

#include "llama/adapters.h"
#include "llama/context_request.h"
#include "llama/devices.h"
#include "llama/draft_host.h"
#include "llama/fit.h"
#include "llama/fit_step.h"
#include "llama/joined.h"
#include "llama/load_steps.h"
#include "llama/log.h"
#include "llama/model_file.h"
#include "llama/model_meta.h"
#include "llama/model_request.h"
#include "llama/names.h"
#include "llama/sampler_maker.h"

namespace paddock {
namespace {

constexpr std::int32_t auto_slots = 4;
/// Loads with fewer layers after one that failed for memory (10 §3.9 step d).
constexpr int max_memory_retries = 3;

/// Stage L1: every violation at once, before any file is opened (10 §3.1).
void check_ranges(const EngineParams& params) {
    const std::vector<std::string> problems = problems_of(params);
    if (!problems.empty()) throw LoadError("params", joined(problems, "; "));
}

void start_numa(const std::string& name) {
    static std::once_flag once;
    const ggml_numa_strategy strategy = numa_of(name);
    if (strategy == GGML_NUMA_STRATEGY_DISABLED) return;
    std::call_once(once, [strategy] { llama_numa_init(strategy); });
}

/// What follows from the wishes alone (10 §3.7).
EngineParams resolved(EngineParams params) {
    if (params.n_parallel < 0) {
        params.n_parallel = auto_slots;
        params.kv_unified = true;
    }
    const auto n_max = static_cast<std::int32_t>(llama_max_parallel_sequences());
    if (params.n_parallel > n_max) {
        throw LoadError("params", "n_parallel " + std::to_string(params.n_parallel) + " is more than the " +
                                      std::to_string(n_max) + " sequences of this llama.cpp");
    }
    if ((params.embeddings || params.reranking) && params.n_batch > params.n_ubatch) {
        // Attention without a causal mask needs all of an input in one physical batch; libllama would abort.
        log_line(LogLevel::warning,
                 "warning: embeddings need whole inputs in a physical batch; n_batch is lowered to " +
                     std::to_string(params.n_ubatch));
        params.n_batch = params.n_ubatch;
    }
    return params;
}

/// One token through everything, so that the first request doesn't wait for weights to be paged in. For
/// contexts that no probe has decoded with.
void warm_up(LlamaContext& context, Token token) {
    const BatchRow row{token, 0, 0, true};
    const std::int32_t code = context.decode({&row, 1});
    llama_synchronize(context.handle());
    context.clear();
    if (code != 0) {
        throw LoadError("warmup",
                        with_library_errors("the warm-up decode failed with code " + std::to_string(code)));
    }
}

/// Steps 4 to 14 of 10 §3.2; what was made is freed when one of them throws.
Loaded load_once(const EngineParams& params, const std::function<bool()>& is_cancelled) {
    const ModelHandle model = load_model(params, is_cancelled);
    Loaded loaded;
    if (llama_vocab_type(llama_model_get_vocab(model.get())) == LLAMA_VOCAB_TYPE_NONE) {
        throw LoadError("vocab",
                        "model '" + params.model_path + "' has no vocabulary; the engine serves text");
    }
    const auto vocabulary = std::make_shared<LlamaVocabulary>(model);
    loaded.vocabulary = vocabulary;
    loaded.samplers = make_sampler_maker(vocabulary);
    loaded.meta = read_model_meta(model.get(), *vocabulary);
    Adapters adapters = load_adapters(params, model.get(), *vocabulary);
    check_cancelled(is_cancelled);
    ContextHandle handle = make_context(params, model);
    const ContextFacts facts = read_facts(params, model.get(), handle.get());
    auto context =
        std::make_unique<LlamaContext>(model, std::move(handle), facts, std::move(adapters.handles));
    const bool has_decoded = context->probe_removal(any_token(*vocabulary));
    context->probe_backend_sampler();
    check_cancelled(is_cancelled);
    if (params.warmup && !has_decoded) warm_up(*context, any_token(*vocabulary));
    loaded.context = std::move(context);
    load_drafter(params, is_cancelled, loaded);
    loaded.loras = std::move(adapters.views);
    loaded.n_slots = params.n_parallel;
    return loaded;
}

/// Whether libllama's lines name memory as the cause.
bool is_memory_failure(const LoadError& error) {
    if (error.code() != "model-load" && error.code() != "context") return false;
    const std::string text = error.what();
    constexpr std::array<std::string_view, 4> signs{"alloc", "out of memory", "OutOfDeviceMemory",
                                                    "OutOfHostMemory"};
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return text.find(sign) != std::string::npos; });
}

}  // namespace

Loaded LlamaHost::load(const EngineParams& params, const std::function<bool()>& is_cancelled) {
    // A thread that has computed keeps OpenMP workers for as long as it lives. More of them than processors
    // makes libgomp's barriers sleep instead of spin, so the warm-up's have to be gone when decoding begins.
    return std::async(std::launch::async, [&] { return load_here(params, is_cancelled); }).get();
}

Loaded LlamaHost::load_here(const EngineParams& params, const std::function<bool()>& is_cancelled) {
    check_ranges(params);
    start_library();
    start_numa(params.numa);
    EngineParams effective = effective_ ? *effective_ : resolved(params);
    // Names are checked before the file is read.
    const ModelRequest check(effective, is_cancelled);
    context_params_of(effective);
    check_drafter_names(effective);
    const ModelFile file(effective.model_path);
    file.check_sizes(effective.metadata_overrides);
    if (effective.fit && !effective_) effective = fitted(effective, file);
    for (int retries = 0;; ++retries) {
        forget_library_errors();
        try {
            Loaded loaded = load_once(effective, is_cancelled);
            effective_ = effective;
            return loaded;
        } catch (const LoadError& error) {
            const bool may_retry = effective.fit && !effective.layers_given && effective.n_gpu_layers > 0;
            if (!may_retry || retries == max_memory_retries || !is_memory_failure(error)) throw;
            effective.n_gpu_layers = fewer_layers(effective.n_gpu_layers);
            log_line(LogLevel::warning, std::string("warning: ") + error.what() + "; trying with " +
                                            std::to_string(effective.n_gpu_layers) + " layers on devices");
        }
    }
}

void LlamaHost::log(int level, const std::string& text) const {
    log_line(static_cast<LogLevel>(level), text);
}

}  // namespace paddock
