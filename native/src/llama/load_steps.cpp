#include "llama/load_steps.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/model_host.h"
#include "llama/context_request.h"
#include "llama/joined.h"
#include "llama/log.h"
#include "llama/model_request.h"

namespace paddock {

std::string with_library_errors(const std::string& message) {
    const std::vector<std::string> causes = library_errors();
    return causes.empty() ? message : message + ": " + joined(causes, "; ");
}

void check_cancelled(const std::function<bool()>& is_cancelled) {
    if (is_cancelled()) throw LoadError("cancelled", "the load was cancelled by a shutdown");
}

ModelHandle load_model(const EngineParams& params, const std::function<bool()>& is_cancelled) {
    // Kept with the model, which may look into these arrays later.
    auto request = std::make_shared<ModelRequest>(params, is_cancelled);
    llama_model* raw = llama_model_load_from_file(params.model_path.c_str(), request->params());
    if (raw == nullptr) {
        check_cancelled(is_cancelled);
        throw LoadError("model-load",
                        with_library_errors("failed to load model '" + params.model_path + "'"));
    }
    return {raw, [request](llama_model* model) { llama_model_free(model); }};
}

ContextHandle make_context(const EngineParams& params, const ModelHandle& model) {
    llama_context_params wanted = context_params_of(params);
    // A running state for each sequence would be memory for side chains that can't be.
    if (llama_model_is_recurrent(model.get()) || llama_model_is_hybrid(model.get())) {
        wanted.n_seq_max = static_cast<std::uint32_t>(params.n_parallel);
    }
    ContextHandle context(llama_init_from_model(model.get(), wanted));
    if (context != nullptr) return context;
    throw LoadError("context", with_library_errors("failed to create llama_context with n_ctx " +
                                                   std::to_string(params.n_ctx) + ", n_batch " +
                                                   std::to_string(params.n_batch) + ", cache types " +
                                                   params.cache_type_k + " and " + params.cache_type_v));
}

Token any_token(const Vocabulary& vocabulary) {
    if (vocabulary.bos() >= 0) return vocabulary.bos();
    return std::max(vocabulary.eos(), 0);
}

}  // namespace paddock
