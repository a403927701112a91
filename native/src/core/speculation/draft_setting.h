// How a request drafts with one drafter: what it asks for, over what the server was started with (11 §8.2,
// §18.2).
#pragma once

#include "core/slot.h"
#include "core/speculation/depth_state.h"
#include "core/speculation/drafter.h"
#include "core/speculation/verification.h"

namespace paddock {

/// `asked`: the server's way to judge drafts. Of a request with a sampler.
DepthSetting draft_setting(const SlotRequest& request, const Drafter& drafter,
                           const SpeculationParams& served, VerifyMode asked);

}  // namespace paddock
