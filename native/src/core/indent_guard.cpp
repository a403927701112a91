#include "core/indent_guard.h"

#include <algorithm>

namespace paddock {

IndentGuard::IndentGuard(std::int32_t n_indent)
    : n_indent_(static_cast<std::size_t>(std::max(0, n_indent))) {}

std::optional<std::size_t> IndentGuard::check(std::string_view text) {
    if (line_start_ > 0) {
        while (blanks_end_ < text.size() && (text[blanks_end_] == ' ' || text[blanks_end_] == '\t')) {
            ++blanks_end_;
        }
        if (blanks_end_ < text.size() && blanks_end_ - line_start_ < n_indent_) {
            return blanks_end_;
        }
    }
    const std::size_t newline = text.find('\n', searched_);
    if (newline == std::string_view::npos) {
        searched_ = text.size();
    } else {
        line_start_ = blanks_end_ = searched_ = newline + 1;
    }
    return std::nullopt;
}

}  // namespace paddock
