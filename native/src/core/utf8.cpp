#include "core/utf8.h"

#include <algorithm>

namespace paddock {

namespace {

constexpr std::size_t longest = 4;

bool is_continuation(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

/// Bytes of the character that begins with this one; 1 for a byte that begins none.
std::size_t character_length(unsigned char first) {
    if (first >= 0xC2U && first <= 0xDFU) {
        return 2;
    }
    if (first >= 0xE0U && first <= 0xEFU) {
        return 3;
    }
    return first >= 0xF0U && first <= 0xF4U ? longest : 1;
}

}  // namespace

std::size_t complete_length(std::string_view text) {
    const std::size_t reach = std::min(text.size(), longest - 1);
    for (std::size_t back = 1; back <= reach; ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (!is_continuation(byte)) {
            return character_length(byte) > back ? text.size() - back : text.size();
        }
    }
    return text.size();
}

}  // namespace paddock
