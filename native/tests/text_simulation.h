// Texts of several kinds in turn, in several slots, under adaptive depth and under each fixed one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/speculation/depth_control.h"

namespace paddock {

/// How a text can be drafted from itself.
struct TextKind {
    double found = 0.0;     // chance that there is something to draft
    double accepted = 0.0;  // of each token when those before it were accepted
};

/// Copies, code, prose, extraction, hostile text, and an edit that is nearly a copy.
constexpr std::array<TextKind, 6> text_kinds{
    {{0.5, 0.45}, {0.72, 0.85}, {0.25, 0.25}, {0.6, 0.75}, {0.8, 0.05}, {0.9, 0.97}}};

/// Milliseconds of a cycle: of a device that hardly feels a row, of one that does, of two cores, and of one
/// that takes the rows by eight.
struct CycleCost {
    double start = 0.0;
    double row = 0.0;
    std::int32_t block = 1;

    double of(std::int32_t rows) const { return start + row * ((rows + block - 1) / block * block); }
};
constexpr std::array<CycleCost, 4> cycle_costs{
    {{10.0, 0.4, 1}, {20.0, 9.0, 1}, {2.0, 4.2, 1}, {10.0, 2.9, 8}}};

class TextSimulation {
  public:
    static constexpr std::int32_t longest = 16;
    static constexpr double time_scatter = 0.05;
    /// So many times take three times as long as they should.
    static constexpr double hitches = 0.02;
    static constexpr double drafting_ms = 0.01;

    TextSimulation(CycleCost cost, std::int32_t n_slots, std::int32_t n_tokens, std::uint32_t seed)
        : cost_(cost), n_tokens_(n_tokens), control_({}, n_slots), random_(seed) {
        for (SequenceId id = 0; id < n_slots; ++id) {
            ids_.push_back(id);
        }
    }

    /// Tokens a millisecond of one text in each slot, with a depth, or with the one that adapts. What was
    /// learnt stays for the next call; with `continues`, the text of the call before goes on with this kind.
    double run(TextKind kind, std::optional<std::int32_t> fixed, bool continues = false) {
        std::vector<std::int32_t> left(ids_.size(), n_tokens_);
        if (!fixed) {
            for (const SequenceId id : ids_) {
                control_.begin(id, type, {longest, 0, 0.0F, 0.0F, "exact", true, "profit"}, continues);
            }
        }
        shadows_.assign(ids_.size(), {});
        double ms = 0.0;
        while (std::ranges::any_of(left, [](std::int32_t n) { return n > 0; })) {
            ms += cycle(kind, fixed, left);
        }
        return static_cast<double>(ids_.size()) * n_tokens_ / ms;
    }

  private:
    static constexpr DraftType type = DraftType::ngram_simple;

    double cycle(TextKind kind, std::optional<std::int32_t> fixed, std::vector<std::int32_t>& left) {
        std::vector<SequenceId> generating;
        std::ranges::copy_if(ids_, std::back_inserter(generating),
                             [&](SequenceId id) { return left[static_cast<std::size_t>(id)] > 0; });
        if (!fixed) {
            for (const SequenceId id : generating) {
                compare(kind, id, n_tokens_ - left[static_cast<std::size_t>(id)]);
            }
            control_.start_cycle(generating, 1000);
        }
        DepthControl::Cycle cycle{.is_pure = true,
                                  .rows = static_cast<std::int32_t>(generating.size()),
                                  .draft_ms = drafting_ms,
                                  .n_memory_tokens = 1000};
        DraftWork work{.type = type, .ms = drafting_ms};
        std::vector<DepthControl::Found> drafts;
        for (const SequenceId id : generating) {
            const std::int32_t depth = std::min(depth_of(id, fixed), left[static_cast<std::size_t>(id)] - 1);
            if (depth > 0) {
                drafts.push_back({id, chance() < kind.found ? depth : 0});
                work.n_drafting += drafts.back().size > 0 ? 1 : 0;
                work.deepest = std::max(work.deepest, drafts.back().size);
            }
        }
        if (!fixed) {
            control_.shorten(drafts, type);
        }
        for (const SequenceId id : generating) {
            const auto draft = std::ranges::find(drafts, id, &DepthControl::Found::slot);
            const std::int32_t drafted = draft == drafts.end() ? 0 : draft->size;
            std::int32_t& rest = left[static_cast<std::size_t>(id)];
            const std::int32_t right = right_of(kind);
            const std::int32_t accepted = std::min(drafted, right);
            Shadow& shadow = shadows_[static_cast<std::size_t>(id)];
            if (!fixed && shadow.start < 0 && drafted > 0) {
                shadow = {n_tokens_ - rest, right, drafted};
            }
            if (!fixed) {
                control_.on_verified(id, type, drafted, accepted, std::min(drafted, accepted + 1), drafted);
            }
            cycle.rows += drafted;
            cycle.n_drafting += drafted > 0 ? 1 : 0;
            rest -= 1 + accepted;
        }
        const double ms = cost_.of(cycle.rows);
        cycle.model_ms = ms * std::max(0.1, 1.0 + time_scatter * normal_(random_));
        cycle.model_ms *= chance() < hitches ? 3.0 : 1.0;
        if (!fixed) {
            cycle.works = {work};
            control_.end_cycle(cycle);
            end_finished(generating, left);
        }
        return ms;
    }

    /// What is known of a draft that was not verified as a whole, up to token `now` of the text.
    void compare(TextKind kind, SequenceId id, std::int32_t now) {
        Shadow& shadow = shadows_[static_cast<std::size_t>(id)];
        if (shadow.start >= 0) {
            const std::int32_t n_right = std::min(shadow.right, now - shadow.start);
            const std::int32_t n_examined = std::min({now - shadow.start, shadow.right + 1, longest});
            control_.on_compared(id, type, shadow.told, n_right, n_examined);
            shadow.told = std::max(shadow.told, n_examined);
            if (n_examined > shadow.right || n_examined == longest) {
                shadow.start = -1;
            }
        }
        if (shadow.start < 0 && control_.wants_look(id, type)) {
            const bool is_found = chance() < kind.found;
            control_.on_look(id, type, is_found);
            if (is_found) {
                shadow = {now, right_of(kind), 0};
            }
        }
    }

    /// How many tokens of a draft are right.
    std::int32_t right_of(TextKind kind) {
        std::int32_t right = 0;
        while (right < longest && chance() < kind.accepted) {
            ++right;
        }
        return right;
    }

    std::int32_t depth_of(SequenceId id, std::optional<std::int32_t> fixed) {
        if (fixed) {
            return *fixed;
        }
        return control_.is_baseline_probe() ? 0 : control_.cap(id, type, true);
    }

    void end_finished(const std::vector<SequenceId>& generating, const std::vector<std::int32_t>& left) {
        for (const SequenceId id : generating) {
            if (left[static_cast<std::size_t>(id)] <= 0) {
                control_.end(id);
            }
        }
    }

    struct Shadow {
        std::int32_t start = -1;
        std::int32_t right = 0;
        std::int32_t told = 0;
    };

    double chance() { return uniform_(random_); }

    CycleCost cost_;
    std::int32_t n_tokens_;
    DepthControl control_;
    std::vector<SequenceId> ids_;
    std::vector<Shadow> shadows_;
    std::mt19937 random_;
    std::normal_distribution<double> normal_;
    std::uniform_real_distribution<double> uniform_;
};

/// Speeds of a kind of text, means over texts.
struct TextSpeeds {
    double adaptive = 0.0;
    double plain = 0.0;
    double best = 0.0;  // of the fixed depths 0, 1, 2, 4, 8 and 16
};

/// All kinds in the order given, `n_texts` of each after one with which the depth meets the kind.
inline std::vector<TextSpeeds> simulate_texts(CycleCost cost, std::int32_t n_slots, std::int32_t n_tokens,
                                              std::int32_t n_texts, std::uint32_t seed,
                                              const std::vector<TextKind>& kinds) {
    TextSimulation simulation(cost, n_slots, n_tokens, seed);
    const auto mean = [&](TextKind kind, std::optional<std::int32_t> depth, std::int32_t n) {
        double sum = 0.0;
        for (std::int32_t i = 0; i < n; ++i) {
            sum += simulation.run(kind, depth);
        }
        return sum / n;
    };
    std::vector<TextSpeeds> speeds;
    for (const TextKind kind : kinds) {
        TextSpeeds found;
        for (const std::int32_t depth : {0, 1, 2, 4, 8, 16}) {
            const double speed = mean(kind, depth, 3 * n_texts);
            found.plain = depth == 0 ? speed : found.plain;
            found.best = std::max(found.best, speed);
        }
        simulation.run(kind, std::nullopt);
        found.adaptive = mean(kind, std::nullopt, n_texts);
        speeds.push_back(found);
    }
    return speeds;
}

}  // namespace paddock
