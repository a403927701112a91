#include "llama/draft_host.h"

#include <algorithm>

#include "core/speculation/draft_type.h"
#include "core/speculation/vocabulary_check.h"
#include "llama/context.h"
#include "llama/context_request.h"
#include "llama/load_steps.h"
#include "llama/log.h"
#include "llama/model_file.h"
#include "llama/model_request.h"
#include "llama/vocabulary.h"

namespace paddock {
namespace {

/// The failures of a step under the reason that 11 §3.4 has for them.
template <typename Step>
auto with_reason(const char* reason, Step step) {
    try {
        return step();
    } catch (const LoadError& error) {
        if (error.code() == "cancelled") throw;
        throw LoadError(reason, error.what());
    }
}

void check_file(const std::string& path) {
    if (path.empty()) throw LoadError("draft-file-missing", "no draft model was given");
    if (const auto problem = problem_of_path(path)) {
        throw LoadError("draft-file-missing", "cannot open draft model '" + path + "': " + *problem);
    }
}

struct LoadedDrafter {
    std::shared_ptr<Vocabulary> vocabulary;
    std::unique_ptr<Context> context;
};

/// Throws LoadError with a reason of 11 §3.4.
LoadedDrafter made_drafter(EngineParams params, const std::function<bool()>& is_cancelled,
                           const Loaded& loaded) {
    check_file(params.model_path);
    const ModelHandle model = with_reason("draft-load-failed", [&] {
        ModelFile(params.model_path).check_sizes({});
        return load_model(params, is_cancelled);
    });
    const auto vocabulary = std::make_shared<LlamaVocabulary>(model);
    if (const auto mismatch = mismatch_of(*loaded.vocabulary, *vocabulary)) {
        throw LoadError(mismatch->reason, mismatch->detail);
    }
    params.n_ctx = loaded.context->facts().n_ctx;
    // Drafts are taken back all the time; a window that forgets would have to be read anew each time.
    params.swa_full = llama_model_n_swa(model.get()) > 0;
    ContextHandle handle = with_reason("draft-context-failed", [&] { return make_context(params, model); });
    const ContextFacts facts = read_facts(params, model.get(), handle.get());
    auto context =
        std::make_unique<LlamaContext>(model, std::move(handle), facts, std::vector<llama_adapter_lora*>());
    context->probe_removal(any_token(*vocabulary));
    if (context->facts().removal != Removal::partial) {
        throw LoadError("draft-no-trim", "the drafter's memory does not let go of single tokens");
    }
    return {vocabulary, std::move(context)};
}

}  // namespace

std::optional<EngineParams> drafter_params(const EngineParams& target) {
    if (std::ranges::count(target.speculation.types, name_of(DraftType::draft_simple)) == 0) {
        return std::nullopt;
    }
    const DraftModelParams& own = target.speculation.model;
    EngineParams params = target;
    params.model_path = own.path;
    params.n_gpu_layers = own.n_gpu_layers;
    params.cache_type_k = own.cache_type_k;
    params.cache_type_v = own.cache_type_v;
    if (!own.devices.empty()) {
        params.devices = own.devices;
        params.tensor_split.clear();
        params.main_gpu = 0;
    }
    if (own.n_threads > 0) params.n_threads = own.n_threads;
    if (own.n_threads_batch > 0) params.n_threads_batch = own.n_threads_batch;
    params.speculation = {};
    params.tensor_placements.clear();
    params.metadata_overrides.clear();
    params.loras.clear();
    params.pooling.clear();
    params.attention.clear();
    params.embeddings = false;
    params.reranking = false;
    params.context_shift = false;
    params.cache_idle_slots = false;
    return params;
}

void check_drafter_names(const EngineParams& params) {
    const std::optional<EngineParams> own = drafter_params(params);
    if (!own.has_value()) return;
    const ModelRequest check(*own, [] { return false; });
    context_params_of(*own);
}

void load_drafter(const EngineParams& params, const std::function<bool()>& is_cancelled, Loaded& loaded) {
    const std::optional<EngineParams> own = drafter_params(params);
    if (!own.has_value()) return;
    forget_library_errors();
    try {
        LoadedDrafter drafter = made_drafter(*own, is_cancelled, loaded);
        loaded.draft_vocabulary = std::move(drafter.vocabulary);
        loaded.draft_context = std::move(drafter.context);
    } catch (const LoadError& error) {
        if (params.speculation.strict || error.code() == "cancelled") throw;
        loaded.draft_problem = error.code();
        log_line(LogLevel::warning, "warning: draft model '" + params.speculation.model.path +
                                        "' does not run (" + error.code() + "): " + error.what());
    }
}

}  // namespace paddock
