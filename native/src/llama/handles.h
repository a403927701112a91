// Owners of libllama's objects.
#pragma once

#include <memory>

#include "llama.h"

namespace paddock {

/// Shared, since the vocabulary, the context and adapters are parts of the model.
using ModelHandle = std::shared_ptr<llama_model>;

struct ContextFree {
    void operator()(llama_context* context) const { llama_free(context); }
};
using ContextHandle = std::unique_ptr<llama_context, ContextFree>;

}  // namespace paddock
