// A clock and a drafter that follow fixed laws, to see how near adaptive depth comes to the best fixed one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/speculation/depth_control.h"

namespace paddock {

struct SimulatedMachine {
    bool is_dear = false;

    double cycle_ms(std::int32_t rows) const {
        return is_dear ? 20.0 + 9.0 * rows : 10.0 + 0.4 * std::min(rows, 8) + 0.9 * std::max(0, rows - 8);
    }
    double draft_ms(std::int32_t depth) const { return (is_dear ? 5.0 : 1.0) * depth; }
};

struct Simulation {
    SimulatedMachine machine;
    std::int32_t n_slots = 1;
    double acceptance = 0.5;  // of each token when those before it were accepted
    std::int32_t base = 3;
    double noise = 0.0;  // standard deviation of a time, as a share of it
    std::int32_t n_cycles = 2000;
    /// Chance that there is something to draft in a slot: below 1 it is looked up in the text, which costs no
    /// time.
    double found = 1.0;

    /// Tokens that a slot gives in a cycle.
    double expected(std::int32_t depth) const {
        double sum = 1.0;
        double chance = 1.0;
        for (std::int32_t i = 0; i < depth; ++i) {
            chance *= acceptance;
            sum += chance;
        }
        return sum;
    }
    double drafting_ms(std::int32_t deepest) const { return found < 1.0 ? 0.0 : machine.draft_ms(deepest); }
    /// Tokens a millisecond with one depth throughout.
    double fixed(std::int32_t depth) const {
        double ms = 0.0;
        double chance = std::pow(1.0 - found, n_slots);  // of `k` slots that draft
        for (std::int32_t k = 0; k <= n_slots; ++k) {
            if (found >= 1.0) {
                chance = k == n_slots ? 1.0 : 0.0;
            }
            ms += chance * (machine.cycle_ms(n_slots + k * depth) + drafting_ms(k > 0 ? depth : 0));
            chance *= found / (1.0 - found) * (n_slots - k) / (k + 1.0);
        }
        return n_slots * (1.0 + found * (expected(depth) - 1.0)) / ms;
    }
    double best_fixed() const {
        double best = 0.0;
        for (std::int32_t depth = 0; depth <= base; ++depth) {
            best = std::max(best, fixed(depth));
        }
        return best;
    }
    /// Tokens a millisecond under the controller.
    double adaptive(const DepthParams& params, std::uint32_t seed) const {
        const DraftType type = found < 1.0 ? DraftType::ngram_simple : DraftType::draft_simple;
        DepthControl control(params, n_slots);
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        std::uniform_real_distribution<double> uniform;
        std::vector<SequenceId> ids;
        for (SequenceId id = 0; id < n_slots; ++id) {
            ids.push_back(id);
            control.begin(id, type, {base, 0, 0.0F, 0.0F, "rejection", true, "profit"}, false);
        }
        double tokens = 0.0;
        double ms = 0.0;
        for (std::int32_t i = 0; i < n_cycles; ++i) {
            control.start_cycle(ids, 1000);
            DepthControl::Cycle cycle{.is_pure = true, .rows = n_slots, .n_memory_tokens = 1000};
            std::int32_t deepest = 0;
            for (const SequenceId id : ids) {
                const std::int32_t cap = control.is_baseline_probe() ? 0 : control.cap(id, type, true);
                const std::int32_t depth = found < 1.0 && uniform(random) >= found ? 0 : cap;
                tokens += expected(depth);
                std::int32_t accepted = 0;
                while (accepted < depth && uniform(random) < acceptance) {
                    ++accepted;
                }
                control.on_verified(id, type, depth, accepted, std::min(depth, accepted + 1), depth);
                cycle.rows += depth;
                cycle.n_drafting += depth > 0 ? 1 : 0;
                deepest = std::max(deepest, depth);
            }
            const double model = machine.cycle_ms(cycle.rows);
            const double draft = drafting_ms(deepest);
            ms += model + draft;
            cycle.model_ms = model * std::max(0.1, 1.0 + noise * normal(random));
            cycle.draft_ms = draft * std::max(0.1, 1.0 + noise * normal(random));
            cycle.works = {{type, cycle.n_drafting, deepest, cycle.draft_ms}};
            control.end_cycle(cycle);
        }
        return tokens / ms;
    }
};

}  // namespace paddock
