// Ends infill text at the first line that is indented too little (10 §16.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace paddock {

class IndentGuard {
  public:
    /// Least blanks at the start of a line; 0: any number will do.
    explicit IndentGuard(std::int32_t n_indent);

    /// Looks at one line of the text so far, which only grows between calls. Returns the byte at which the
    /// text has to be cut. The first line, which continues the user's own, isn't tested.
    std::optional<std::size_t> check(std::string_view text);

  private:
    std::size_t n_indent_;
    std::size_t line_start_ = 0;
    /// End of the line's blanks, and of what was searched for its end; nothing is read twice.
    std::size_t blanks_end_ = 0;
    std::size_t searched_ = 0;
};

}  // namespace paddock
