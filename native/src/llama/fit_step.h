// The fit step of a load: asks file and devices, lets fit.h decide, and says what was decided (10 §3.9).
#pragma once

#include "core/params.h"
#include "llama/model_file.h"

namespace paddock {

/// `params` with a context and a number of layers that fit. What the user set stays as it is; without a
/// device to fit into, or with a split that nobody can foresee, everything does. A separate drafter, whose
/// file is read here, has its memory set aside.
EngineParams fitted(const EngineParams& params, const ModelFile& file);

}  // namespace paddock
