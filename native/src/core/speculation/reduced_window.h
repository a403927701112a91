// Whether the drafts within a window can be judged by the few best tokens of their rows (11 §11.2-11.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace paddock {

namespace view_reason {
inline constexpr std::string_view eligible = "eligible";
/// Eligible, in a window with rows that nobody judges in this way.
inline constexpr std::string_view coverage = "coverage";
}  // namespace view_reason

/// The draft of one slot whose plan is on.
struct ReducedRows {
    /// Tokens of each row.
    std::int32_t k = 0;
    bool is_reasoning = false;
    /// Whether the sampler chooses from `k` tokens as it does from all.
    bool is_enough = false;
    /// Of the pending token and of each drafted one, within the window.
    std::span<const std::int32_t> rows;
    std::int32_t n_drafted = 0;
};

class ReducedWindow {
  public:
    explicit ReducedWindow(std::int32_t n_rows);

    /// Marks the rows of a slot: `eligible`, or the first reason of 11 §11.2 against it.
    std::string_view admit(const ReducedRows& slot);
    /// Every row was marked; to be asked when all slots were admitted.
    bool is_lean() const;

  private:
    std::string_view mark(std::span<const std::int32_t> rows);

    std::vector<bool> is_marked_;
};

}  // namespace paddock
