#include "core/printable.h"

#include <cstddef>

namespace paddock {

namespace {

constexpr unsigned char first_printable = 0x20;
constexpr unsigned char del = 0x7F;
/// The controls U+0080 to U+009F are this byte and 0x80 to 0x9F.
constexpr unsigned char lead_of_controls = 0xC2;
constexpr unsigned char first_behind_controls = 0xA0;
constexpr unsigned char continuation = 0x80;

/// Bytes of the control character that begins at `at`; 0: none does.
std::size_t control_size(std::string_view text, std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < first_printable || byte == del) {
        return 1;
    }
    if (byte != lead_of_controls || at + 1 == text.size()) {
        return 0;
    }
    const auto next = static_cast<unsigned char>(text[at + 1]);
    return next >= continuation && next < first_behind_controls ? 2 : 0;
}

void append_escaped(std::string& line, char raw) {
    constexpr std::string_view digits = "0123456789abcdef";
    switch (raw) {
        case '\n': line += "\\n"; return;
        case '\r': line += "\\r"; return;
        case '\t': line += "\\t"; return;
        default: break;
    }
    const auto byte = static_cast<unsigned char>(raw);
    line += "\\x";
    line += digits[byte >> 4U];
    line += digits[byte & 0x0FU];
}

}  // namespace

std::string printable(std::string_view text) {
    std::string line;
    line.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = control_size(text, at);
        if (size == 0) {
            line += text[at++];
            continue;
        }
        for (const std::size_t end = at + size; at < end; ++at) {
            append_escaped(line, text[at]);
        }
    }
    return line;
}

}  // namespace paddock
