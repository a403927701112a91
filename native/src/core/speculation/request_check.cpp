#include "core/speculation/request_check.h"

#include "core/checks.h"
#include "core/speculation/ranges.h"

namespace paddock {

std::vector<std::string> problems_of(const SpeculationRequest& request, const SpeculationParams& served) {
    Checks checks;
    if (request.n_max.has_value()) {
        checks.range("speculative.n_max", *request.n_max, 1, served.n_max);
    }
    if (request.n_min.has_value() || request.n_max.has_value()) {
        checks.range("speculative.n_min", request.n_min.value_or(served.n_min), 0,
                     request.n_max.value_or(served.n_max));
    }
    if (request.p_min.has_value()) {
        checks.range("speculative.p_min", *request.p_min, 0.0F, 1.0F);
    }
    if (request.controller.has_value()) {
        checks.word("speculative.controller", *request.controller, controllers);
    }
    return checks.take();
}

}  // namespace paddock
