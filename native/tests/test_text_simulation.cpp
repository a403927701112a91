// Adaptive depth where one text follows another, on a simulated clock with hitches (11 §15.6, §17.10).
#include <doctest/doctest.h>

#include "text_simulation.h"

using namespace paddock;

TEST_CASE("texts that change keep adaptive depth near the best fixed depth of each") {
    const std::vector<TextKind> kinds(text_kinds.begin(), text_kinds.end());
    double sum = 0.0;
    int n = 0;
    for (const CycleCost cost : cycle_costs) {
        for (const std::int32_t n_slots : {1, 4}) {
            for (const TextSpeeds& speeds : simulate_texts(cost, n_slots, 128, 2, 1, kinds)) {
                CAPTURE(cost.row);
                CAPTURE(n_slots);
                // Two texts are a small sample: a mean over all says more.
                CHECK(speeds.adaptive >= 0.75 * speeds.best);
                CHECK(speeds.adaptive >= 0.90 * speeds.plain);
                sum += speeds.adaptive / speeds.best;
                ++n;
            }
        }
    }
    CHECK(sum / n >= 0.95);
}
