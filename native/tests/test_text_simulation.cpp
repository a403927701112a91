// Adaptive depth where one text follows another, on a simulated clock with hitches (11 §15.6, §17.10).
#include <doctest/doctest.h>

#include <algorithm>

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

TEST_CASE("a text that changes its kind in its middle is soon drafted as that kind should be") {
    const TextKind words{0.5, 0.03};
    const TextKind copy{1.0, 0.97};
    for (const CycleCost cost : cycle_costs) {
        for (const std::int32_t n_slots : {1, 4}) {
            constexpr std::int32_t n_tokens = 400;
            constexpr int n_turns = 12;
            TextSimulation simulation(cost, n_slots, n_tokens, 7);
            const auto best = [&](TextKind kind) {
                double speed = 0.0;
                for (const std::int32_t depth : {0, 4, 7, 16}) {
                    speed = std::max(speed, simulation.run(kind, depth));
                }
                return speed;
            };
            const double best_words = best(words);
            const double best_copy = best(copy);
            simulation.run(words, std::nullopt);
            double words_share = 0.0;
            double copy_share = 0.0;
            for (int i = 0; i < n_turns; ++i) {
                copy_share += simulation.run(copy, std::nullopt, true) / best_copy / n_turns;
                words_share += simulation.run(words, std::nullopt, true) / best_words / n_turns;
            }
            CAPTURE(cost.row);
            CAPTURE(cost.block);
            CAPTURE(n_slots);
            CHECK(copy_share >= 0.85);
            CHECK(words_share >= 0.9);
        }
    }
}
