// Parameters of an engine as those of a context, and what a context then really has (10 §3.3-3.6).
#pragma once

#include "core/context.h"
#include "core/params.h"
#include "llama.h"

namespace paddock {

llama_context_params context_params_of(const EngineParams& params);

/// Reads back from a fresh context. Warns about every wish that the model can't fulfil.
ContextFacts read_facts(const EngineParams& params, const llama_model* model, llama_context* context);

}  // namespace paddock
