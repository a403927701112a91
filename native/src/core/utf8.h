// Where text that arrives in pieces ends on a whole character (10 §16.2).
#pragma once

#include <cstddef>
#include <string_view>

namespace paddock {

/// Length of the text without the beginning of a character at its end. Bytes that can't become a character
/// count as complete. Looks at the last three bytes only.
std::size_t complete_length(std::string_view text);

}  // namespace paddock
