#include "core/speculation/draft_setting.h"

#include <algorithm>
#include <string>

namespace paddock {

namespace {

/// What the drafter draws at; 0: it takes the likeliest, and says no chances (11 §5.5).
float temperature_of(const SlotRequest& request, DraftType type, const SpeculationParams& served,
                     VerifyMode asked) {
    const bool draws =
        is_model_drafter(type) && asked != VerifyMode::exact && request.sampler->has_distribution();
    if (!draws) {
        return 0.0F;
    }
    return served.draft_temperature >= 0.0F ? served.draft_temperature : request.params->sampling.temperature;
}

}  // namespace

DepthSetting draft_setting(const SlotRequest& request, const Drafter& drafter,
                           const SpeculationParams& served, VerifyMode asked) {
    const SpeculationRequest& wanted = request.params->speculation;
    const bool is_model = is_model_drafter(drafter.type());
    const float temperature = temperature_of(request, drafter.type(), served, asked);
    return {.base = is_model ? std::min(wanted.n_max.value_or(served.n_max), drafter.own_max())
                             : drafter.own_max(),
            .n_min = is_model ? wanted.n_min.value_or(served.n_min) : drafter.own_min(),
            .p_min = is_model ? wanted.p_min.value_or(served.p_min) : 0.0F,
            .temperature = temperature,
            .mode = std::string(name_of(temperature > 0.0F ? asked : VerifyMode::exact)),
            .adaptive = wanted.adaptive.value_or(served.depth.adaptive),
            .controller = wanted.controller.value_or(served.depth.controller)};
}

}  // namespace paddock
