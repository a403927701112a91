#include "core/speculation/acceptance_change.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace paddock {
namespace {

/// Right tokens, or wrong ones, that have become half as many.
constexpr double change = 0.5;
/// Chances lie within these bounds: nothing is certain.
constexpr double least_chance = 0.05;
/// Log of how many times likelier the change must be.
constexpr double enough = 6.0;

}  // namespace

std::optional<AcceptanceTable> AcceptanceChange::add(std::span<const double> gains, std::int32_t n_accepted,
                                                     double weight, std::int32_t n_told) {
    const auto n_examined = static_cast<std::int32_t>(gains.size());
    std::array<double, 2> more{};
    double before = 1.0;
    for (std::size_t i = 0; i < gains.size(); ++i) {
        const double right =
            std::clamp(before > 0.0 ? gains[i] / before : 0.0, least_chance, 1.0 - least_chance);
        before = gains[i];
        if (static_cast<std::int64_t>(i) < n_told) {
            continue;
        }
        const bool is_right = static_cast<std::int64_t>(i) < n_accepted;
        const double worse = change * right;
        const double better = 1.0 - change * (1.0 - right);
        more[0] += std::log(is_right ? worse / right : (1.0 - worse) / (1.0 - right));
        more[1] += std::log(is_right ? better / right : (1.0 - better) / (1.0 - right));
    }
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        Side& side = sides_[i];
        side.since.add(n_accepted, n_examined, n_examined, weight, weight, n_told);
        side.evidence += more[i];
        if (side.evidence <= 0.0) {
            side = {};
        }
    }
    const auto found = std::ranges::max_element(sides_, {}, &Side::evidence);
    if (found->evidence < enough) {
        return std::nullopt;
    }
    const AcceptanceTable since = found->since;
    sides_ = {};
    return since;
}

}  // namespace paddock
