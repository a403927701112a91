// Steps that targets and drafters load by (10 §3.2).
#pragma once

#include <functional>
#include <string>

#include "core/params.h"
#include "core/vocabulary.h"
#include "llama/handles.h"

namespace paddock {

/// Throws LoadError `cancelled` when that is so.
void check_cancelled(const std::function<bool()>& is_cancelled);

/// Reads the model of `params`. Throws LoadError `model-load` or `cancelled`.
ModelHandle load_model(const EngineParams& params, const std::function<bool()>& is_cancelled);

/// Throws LoadError `context`, naming what was asked for.
ContextHandle make_context(const EngineParams& params, const ModelHandle& model);

/// A token that every model can decode, for probes.
Token any_token(const Vocabulary& vocabulary);

/// The message, with the errors that libllama has logged since `forget_library_errors`.
std::string with_library_errors(const std::string& message);

}  // namespace paddock
