// LoRA adapters of a model (10 §19.1).
#pragma once

#include <vector>

#include "core/params.h"
#include "core/result.h"
#include "llama/vocabulary.h"

namespace paddock {

struct Adapters {
    /// By id; owned by the model.
    std::vector<llama_adapter_lora*> handles;
    std::vector<LoraView> views;
};

/// Throws LoadError `lora` naming the file. libllama wants it done before the context is made.
Adapters load_adapters(const EngineParams& params, llama_model* model, const LlamaVocabulary& vocabulary);

}  // namespace paddock
