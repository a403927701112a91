// Texts of clients and of model files in lines of a log.
#pragma once

#include <string>
#include <string_view>

namespace paddock {

/// `text` as part of one line: control characters, those of two bytes in UTF-8 included, are written as \n,
/// \r,
/// \t or \x1b; all else, valid UTF-8 or not, stays as it is.
std::string printable(std::string_view text);

}  // namespace paddock
