// Notices that a response repeats itself, in its reasoning or in what is visible (11 §19).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/speculation/report.h"
#include "core/speculation/speculation_params.h"
#include "core/types.h"

namespace paddock {

/// Part of a response that a token belongs to; the end token and forced ones belong to none (11 §19.4).
enum class TextRegion { visible, reasoning, none };

enum class LoopAction { stop, force_close };

constexpr std::string_view name_of(LoopAction action) {
    return action == LoopAction::stop ? "stop" : "force-close";
}

/// A repetition at the end of a history; lengths in tokens.
struct Loop {
    bool is_exact = true;
    std::int32_t period = 0;
    std::int32_t coverage = 0;
    /// Share of the history that repeats, or of the tokens that equal those a period earlier.
    double score = 0.0;

    std::string_view kind() const { return is_exact ? "exact" : "near"; }
};

/// The last tokens of a region, and how far each period fits them. A token costs a comparison for each
/// period; whether something repeats is then read off.
class RepetitionHistory {
  public:
    /// Of valid parameters (11 §19.2).
    RepetitionHistory(std::int32_t window, std::int32_t max_period, std::int32_t min_coverage);

    void push(Token token);
    void clear();
    std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size() - begin_); }
    /// The repetition of the shortest period that is exact, else the best of those that nearly are (11
    /// §19.6, §19.7).
    std::optional<Loop> find() const;

  private:
    std::optional<Loop> find_exact(std::size_t last_period) const;
    std::optional<Loop> find_near(std::size_t last_period) const;
    void drop_oldest();

    std::size_t window_;
    std::size_t max_period_;
    std::int32_t min_coverage_;
    /// The history starts at `begin_`; what is before it is let go now and then.
    std::vector<Token> tokens_;
    std::size_t begin_ = 0;
    /// For the period at each index + 1: newest tokens in a row, and tokens of the whole history, that equal
    /// those a period earlier.
    std::vector<std::int32_t> runs_;
    std::vector<std::int32_t> matches_;
};

/// Of one response.
class LoopGuard {
  public:
    /// Counts tokens and does nothing else.
    LoopGuard() : LoopGuard(LoopGuardParams{}) {}
    /// Takes valid parameters.
    explicit LoopGuard(const LoopGuardParams& params);

    /// The next token of the response. Not empty: it completes a repetition, and `act` has to follow.
    std::optional<Loop> take(Token token, TextRegion region);

    /// Whether a loop in this region may be answered by closing the reasoning. `n_remaining`: tokens that may
    /// still be generated, negative: any number; `n_forced`: tokens that the end of the reasoning takes.
    bool may_close(TextRegion region, std::int32_t n_remaining, std::int32_t n_forced) const;

    /// Notes what is done about a loop.
    void act(const Loop& loop, LoopAction action);

    bool is_on() const { return report_.mode != "off"; }
    const LoopGuardReport& report() const { return report_; }

  private:
    struct Region {
        RepetitionHistory history;
        std::int32_t n_tokens = 0;
        std::int32_t n_unchecked = 0;
    };

    LoopGuardParams params_;
    LoopGuardReport report_;
    /// By TextRegion.
    std::array<Region, 2> regions_;
    TextRegion last_region_ = TextRegion::none;
};

}  // namespace paddock
