#include "llama/sampler_triggers.h"

#include <algorithm>
#include <stdexcept>

namespace paddock {
namespace {

/// Far more, and longer, than the tools of a request make; what is over would only cost time and memory.
constexpr std::size_t max_triggers = 256;
constexpr std::size_t max_trigger_bytes = 4096;
/// Each is matched for each token, in up to some ten milliseconds for the worst of them.
constexpr std::size_t max_patterns = 32;
/// std::regex recurses into groups while it reads a pattern.
constexpr std::size_t max_groups = 64;
/// Bytes that a pattern may span, and a text that patterns of whole texts are still tried on. Matching takes
/// time in proportion to them, for each token.
constexpr std::size_t pattern_window_bytes = 512;
constexpr std::size_t full_text_bytes = 2048;

std::string quoted(const GrammarTrigger& trigger) {
    constexpr std::size_t max_shown = 64;
    const bool is_cut = trigger.value.size() > max_shown;
    return '"' + trigger.value.substr(0, max_shown) + (is_cut ? "…\"" : "\"");
}

void check(const std::vector<GrammarTrigger>& triggers) {
    if (triggers.empty()) throw std::invalid_argument("a lazy grammar needs grammar_triggers");
    if (triggers.size() > max_triggers) {
        throw std::invalid_argument("grammar_triggers: " + std::to_string(triggers.size()) +
                                    " entries; at most " + std::to_string(max_triggers) + " are allowed");
    }
    const auto is_pattern = [](const GrammarTrigger& trigger) {
        return trigger.kind == GrammarTrigger::Kind::pattern ||
               trigger.kind == GrammarTrigger::Kind::pattern_full;
    };
    const auto n_patterns = static_cast<std::size_t>(std::ranges::count_if(triggers, is_pattern));
    if (n_patterns > max_patterns) {
        throw std::invalid_argument("grammar_triggers: " + std::to_string(n_patterns) +
                                    " patterns; at most " + std::to_string(max_patterns) + " are allowed");
    }
    for (const GrammarTrigger& trigger : triggers) {
        if (trigger.value.size() > max_trigger_bytes) {
            throw std::invalid_argument("grammar_triggers: " + quoted(trigger) + " is longer than " +
                                        std::to_string(max_trigger_bytes) + " bytes");
        }
    }
}

std::regex compile(const GrammarTrigger& trigger) {
    const auto n_groups = static_cast<std::size_t>(std::ranges::count(trigger.value, '('));
    if (n_groups > max_groups) {
        throw std::invalid_argument("grammar_triggers: " + quoted(trigger) + " has " +
                                    std::to_string(n_groups) + " groups; at most " +
                                    std::to_string(max_groups) + " are allowed");
    }
    auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
    // Time in proportion to the text whatever the pattern, and no recursion with its length; no
    // back-references.
    flags |= std::regex_constants::__polynomial;
#endif
    try {
        return std::regex(trigger.value, flags);
    } catch (const std::regex_error& error) {
        throw std::invalid_argument("grammar_triggers: " + quoted(trigger) + ": " + error.what());
    }
}

std::optional<std::size_t> find_word(std::string_view text, std::string_view word, std::size_t n_new_bytes) {
    // Anything that ended earlier was found with an earlier token.
    const std::size_t n_searched = std::min(text.size(), word.size() - 1 + n_new_bytes);
    const std::size_t start = text.find(word, text.size() - n_searched);
    if (start == std::string_view::npos) return std::nullopt;
    return start;
}

std::optional<std::size_t> find_pattern(const std::string& text, const std::regex& pattern) {
    std::smatch match;
    if (!std::regex_search(text, match, pattern)) return std::nullopt;
    return static_cast<std::size_t>(match.position(0));
}

/// A group in such a pattern marks where the grammar starts.
std::optional<std::size_t> match_full(const std::string& text, const std::regex& pattern) {
    std::smatch match;
    if (!std::regex_match(text, match, pattern)) return std::nullopt;
    for (std::size_t group = 1; group < match.size(); ++group) {
        if (match.length(group) > 0) return static_cast<std::size_t>(match.position(group));
    }
    return 0;
}

}  // namespace

TriggerWatch::TriggerWatch(const std::vector<GrammarTrigger>& triggers) : window_bytes_(1) {
    check(triggers);
    for (const GrammarTrigger& trigger : triggers) {
        switch (trigger.kind) {
            case GrammarTrigger::Kind::token: tokens_.push_back(trigger.token); break;
            case GrammarTrigger::Kind::word:
                if (trigger.value.empty()) throw std::invalid_argument("grammar_triggers: a word is empty");
                words_.push_back(trigger.value);
                window_bytes_ = std::max(window_bytes_, trigger.value.size());
                break;
            case GrammarTrigger::Kind::pattern:
                patterns_.push_back(compile(trigger));
                window_bytes_ = std::max(window_bytes_, pattern_window_bytes);
                break;
            case GrammarTrigger::Kind::pattern_full: full_patterns_.push_back(compile(trigger)); break;
        }
    }
}

std::optional<TriggeredText> TriggerWatch::accept(Token token, std::string_view piece) {
    if (std::ranges::find(tokens_, token) != tokens_.end()) return TriggeredText{.tokens = {token}};
    forget_old();
    held_.push_back({token, piece.size()});
    text_ += piece;
    if (piece.empty()) return std::nullopt;
    const std::optional<std::size_t> start = find_start(piece.size());
    if (!start.has_value()) return std::nullopt;
    return text_from(*start);
}

void TriggerWatch::forget() {
    held_.clear();
    text_.clear();
    is_whole_ = false;
}

void TriggerWatch::reset() {
    forget();
    is_whole_ = true;
}

std::optional<std::size_t> TriggerWatch::find_start(std::size_t n_new_bytes) const {
    std::optional<std::size_t> first;
    const auto take = [&](std::optional<std::size_t> start) {
        if (start.has_value() && (!first.has_value() || *start < *first)) first = start;
    };
    for (const std::string& word : words_) take(find_word(text_, word, n_new_bytes));
    for (const std::regex& pattern : patterns_) take(find_pattern(text_, pattern));
    if (is_whole_) {
        for (const std::regex& pattern : full_patterns_) take(match_full(text_, pattern));
    }
    return first;
}

TriggeredText TriggerWatch::text_from(std::size_t start) const {
    TriggeredText result;
    std::size_t end = 0;
    for (const Held& held : held_) {
        const std::size_t begin = end;
        end += held.n_bytes;
        if (end <= start) continue;
        if (result.tokens.empty()) result.n_bytes_skipped = start - begin;
        result.tokens.push_back(held.token);
    }
    return result;
}

void TriggerWatch::forget_old() {
    const bool reads_whole = is_whole_ && !full_patterns_.empty();
    const std::size_t limit = reads_whole ? std::max(window_bytes_, full_text_bytes) : window_bytes_;
    if (text_.size() <= limit) return;
    while (!held_.empty() && text_.size() - held_.front().n_bytes >= window_bytes_) {
        text_.erase(0, held_.front().n_bytes);
        held_.pop_front();
    }
    is_whole_ = false;
}

}  // namespace paddock
