// Loads the separate drafter by libllama (11 §5.1-5.2).
#pragma once

#include <functional>
#include <optional>

#include "core/model_host.h"

namespace paddock {

/// What the drafter is loaded with: the target's wishes with its own in their place. What belongs to the
/// target's file or to its outputs is left out. Nothing: no model drafts.
std::optional<EngineParams> drafter_params(const EngineParams& target);

/// Names of devices and of cache types, before any file is read. Throws LoadError `params`.
void check_drafter_names(const EngineParams& params);

/// Adds the drafter, when `params` asks for one, to a target that is complete but for it; or the reason why
/// it does not run, with a warning. `params` are those that the target was loaded with. Throws LoadError
/// `cancelled`, and with that reason when speculation is strict.
void load_drafter(const EngineParams& params, const std::function<bool()>& is_cancelled, Loaded& loaded);

}  // namespace paddock
