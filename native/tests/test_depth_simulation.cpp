// Adaptive depth against every fixed depth, on a simulated clock (11 §18.3, §22 vector 40).
#include <doctest/doctest.h>

#include "depth_simulation.h"

using namespace paddock;

TEST_CASE("adaptive depth comes near the best fixed depth, and never far below plain decoding") {
    for (const bool is_dear : {false, true}) {
        for (const std::int32_t n_slots : {1, 2, 4, 8}) {
            for (const double acceptance : {0.2, 0.5, 0.7, 0.85}) {
                for (const std::int32_t base : {3, 8}) {
                    for (const double found : {1.0, 0.5}) {
                        const double noise = 0.1;
                        const Simulation simulation{{is_dear}, n_slots, acceptance, base, noise, 2000, found};
                        const double rate = simulation.adaptive({}, 1);
                        CAPTURE(is_dear);
                        CAPTURE(n_slots);
                        CAPTURE(acceptance);
                        CAPTURE(base);
                        CAPTURE(found);
                        CHECK(rate >= 0.93 * simulation.best_fixed());
                        CHECK(rate >= 0.96 * simulation.fixed(0));
                    }
                }
            }
        }
    }
}
