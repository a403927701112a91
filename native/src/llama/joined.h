// Lists in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paddock {

inline std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    std::string text;
    for (const std::string& part : parts) {
        if (!text.empty()) text += separator;
        text += part;
    }
    return text;
}

}  // namespace paddock
