#include "llama/adapters.h"

#include <array>

#include "core/model_host.h"
#include "llama/model_file.h"

namespace paddock {
namespace {

std::string metadata_of(const llama_adapter_lora* adapter, const char* key) {
    std::array<char, 1024> value{};
    llama_adapter_meta_val_str(adapter, key, value.data(), value.size());
    return value.data();
}

LoraView view_of(const llama_adapter_lora* adapter, const LlamaVocabulary& vocabulary) {
    LoraView view;
    view.task_name = metadata_of(adapter, "adapter.lora.task_name");
    view.prompt_prefix = metadata_of(adapter, "adapter.lora.prompt_prefix");
    const std::uint64_t count = llama_adapter_get_alora_n_invocation_tokens(adapter);
    if (count > 0) {
        const llama_token* tokens = llama_adapter_get_alora_invocation_tokens(adapter);
        view.invocation_tokens.assign(tokens, tokens + count);
        view.invocation_text = vocabulary.detokenize(view.invocation_tokens, true);
    }
    return view;
}

}  // namespace

Adapters load_adapters(const EngineParams& params, llama_model* model, const LlamaVocabulary& vocabulary) {
    Adapters adapters;
    for (const LoraParams& lora : params.loras) {
        if (const auto problem = problem_of_path(lora.path)) {
            throw LoadError("lora", "cannot open lora adapter '" + lora.path + "': " + *problem);
        }
        llama_adapter_lora* handle = llama_adapter_lora_init(model, lora.path.c_str());
        if (handle == nullptr) throw LoadError("lora", "failed to load lora adapter '" + lora.path + "'");
        LoraView view = view_of(handle, vocabulary);
        view.id = static_cast<std::int32_t>(adapters.views.size());
        view.path = lora.path;
        view.scale = params.lora_init_without_apply ? 0.0F : lora.scale;
        adapters.handles.push_back(handle);
        adapters.views.push_back(std::move(view));
    }
    return adapters;
}

}  // namespace paddock
