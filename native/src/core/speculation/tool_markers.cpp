#include "core/speculation/tool_markers.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"

namespace paddock {

namespace {

constexpr auto markers = std::to_array<std::string_view>(
    {"<tool_call", "</tool_call", "<function=", "</function>", "<parameter=", "</parameter>"});
constexpr std::string_view fence = "```";
/// Bytes looked back from what was sent, and from the end of the text.
constexpr std::size_t sent_reach = 64;
constexpr std::size_t end_reach = 256;
/// Tokens that a suspension lasts without a grammar, and suspensions of that kind in a response.
constexpr std::int32_t tokens_suspended = 128;
constexpr std::int32_t max_expired = 3;

std::size_t before(std::size_t position, std::size_t reach) { return position - std::min(position, reach); }

bool starts_marker(std::string_view text) {
    return std::ranges::any_of(markers, [&](std::string_view marker) { return text.starts_with(marker); });
}

/// Whether nothing before it makes it a part of other text.
bool stands_alone(std::string_view text, std::size_t marker) {
    constexpr std::string_view separators = "\n\r\t >";
    return marker == 0 || separators.find(text[marker - 1]) != std::string_view::npos;
}

}  // namespace

bool ToolMarkerDetector::feed(std::string_view text, std::size_t n_sent, bool watches, bool grammar_active) {
    if (is_suppressing_) {
        go_on(grammar_active);
        return false;
    }
    if (!watches || n_expired_ >= max_expired || complete_length(text) < text.size()) {
        return false;
    }
    const std::size_t start = std::max(before(n_sent, sent_reach), before(text.size(), end_reach));
    if (!has_marker(text, start)) {
        return false;
    }
    is_suppressing_ = true;
    is_final_ = grammar_active;
    n_tokens_ = 0;
    return true;
}

void ToolMarkerDetector::go_on(bool grammar_active) {
    is_final_ = is_final_ || grammar_active;
    if (!is_final_ && ++n_tokens_ >= tokens_suspended) {
        is_suppressing_ = false;
        ++n_expired_;
    }
}

bool ToolMarkerDetector::has_marker(std::string_view text, std::size_t start) {
    count_fences(text, start);
    for (std::size_t at = text.find('<', start); at != std::string_view::npos; at = text.find('<', at + 1)) {
        if (starts_marker(text.substr(at)) && stands_alone(text, at) && !is_in_fence(text, at)) {
            return true;
        }
    }
    return false;
}

bool ToolMarkerDetector::is_in_fence(std::string_view text, std::size_t marker) const {
    std::size_t n_fences = n_fences_;
    std::size_t at = text.find(fence, counted_to_);
    while (at < marker) {
        ++n_fences;
        at = text.find(fence, at + fence.size());
    }
    return n_fences % 2 == 1;
}

/// Text before `end` is not read again; it is at least as far from the end of the text as a fence is long.
void ToolMarkerDetector::count_fences(std::string_view text, std::size_t end) {
    const std::string_view read = text.substr(0, end + fence.size() - 1);
    std::size_t at = read.find(fence, counted_to_);
    while (at != std::string_view::npos) {
        ++n_fences_;
        counted_to_ = at + fence.size();
        at = read.find(fence, counted_to_);
    }
    counted_to_ = std::max(counted_to_, end);
}

}  // namespace paddock
