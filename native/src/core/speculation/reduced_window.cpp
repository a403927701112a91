#include "core/speculation/reduced_window.h"

#include <algorithm>
#include <utility>

namespace paddock {

ReducedWindow::ReducedWindow(std::int32_t n_rows)
    : is_marked_(static_cast<std::size_t>(std::max(n_rows, 0)), false) {}

std::string_view ReducedWindow::admit(const ReducedRows& slot) {
    if (is_marked_.empty() || slot.k <= 0) {
        return "empty-view";
    }
    if (slot.is_reasoning) {
        return "reasoning-active";
    }
    if (!slot.is_enough) {
        return "sampler";
    }
    if (slot.rows.size() != static_cast<std::size_t>(slot.n_drafted) + 1) {
        return "spec-index-count";
    }
    return mark(slot.rows);
}

bool ReducedWindow::is_lean() const {
    return std::ranges::all_of(is_marked_, [](bool marked) { return marked; });
}

/// Only an eligible slot leaves marks behind.
std::string_view ReducedWindow::mark(std::span<const std::int32_t> rows) {
    std::vector<bool> marked = is_marked_;
    for (const std::int32_t row : rows) {
        if (row < 0 || static_cast<std::size_t>(row) >= marked.size()) {
            return "spec-index-outside-view";
        }
        auto is_taken = marked[static_cast<std::size_t>(row)];
        if (is_taken) {
            return "duplicate-index";
        }
        is_taken = true;
    }
    is_marked_ = std::move(marked);
    return view_reason::eligible;
}

}  // namespace paddock
