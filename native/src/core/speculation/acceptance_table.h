// Chance that the token at a position of a draft is accepted, for one slot and drafter (11 §17.6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paddock {

class AcceptanceTable {
  public:
    static constexpr std::int32_t n_positions = 64;

    /// Of a draft the first `n_accepted` tokens were right; `n_examined` is one more when the next was wrong.
    /// The first `n_told` of them were added before.
    /// `weight` is the least share of the new outcome in the mean of a position, for the first `n_usual`
    /// ones; the ones behind them are seen seldom, and count by `rare_weight`.
    void add(std::int32_t n_accepted, std::int32_t n_examined, std::int32_t n_usual, double weight,
             double rare_weight, std::int32_t n_told = 0);
    /// Drafts that were examined at their first position.
    std::int64_t n_samples() const { return cells_.front().count; }
    /// Chances that all of the first k + 1 tokens are accepted, into `gains[k]`; falling. What isn't known is
    /// assumed as in the table of `others`, and beyond it each position a little worse than the one before;
    /// an assumption counts as much as `n_assumed` outcomes.
    void fill_gains(std::span<double> gains, std::int32_t n_assumed, const AcceptanceTable& others) const;
    void fill_gains(std::span<double> gains, std::int32_t n_assumed) const {
        fill_gains(gains, n_assumed, AcceptanceTable());
    }
    void clear() { cells_ = {}; }

  private:
    struct Cell {
        double rate = 0.0;
        std::int64_t count = 0;
    };
    std::array<Cell, static_cast<std::size_t>(n_positions)> cells_{};
};

}  // namespace paddock
