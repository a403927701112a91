#include "llama/sampler_grammar_limits.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace paddock {
namespace {

/// Schemas of hundreds of tools stay well below these. A rule can lead to every other one and a group lies in
/// another, each a few frames deeper; the stack of a thread, 8 MiB, holds several times as many.
constexpr std::size_t max_bytes = 1024 * 1024;
constexpr std::size_t max_rules = 8192;
constexpr std::size_t max_depth = 64;
/// A group and a repetition make rules of their own.
constexpr std::string_view rule_signs = "(*+?{";

[[noreturn]] void refuse(const std::string& what, std::size_t found, std::size_t allowed) {
    throw std::invalid_argument("grammar: " + std::to_string(found) + " " + what + "; at most " +
                                std::to_string(allowed) + " are allowed");
}

/// Behind a literal, a character class or a comment that starts at `position`; elsewhere `position` itself.
std::size_t skip_text(std::string_view grammar, std::size_t position) {
    const char opening = grammar[position];
    if (opening == '#') return std::min(grammar.find('\n', position), grammar.size());
    if (opening != '"' && opening != '[') return position;
    const char closing = opening == '"' ? '"' : ']';
    for (std::size_t i = position + 1; i < grammar.size(); ++i) {
        if (grammar[i] == '\\') {
            ++i;
        } else if (grammar[i] == closing) {
            return i + 1;
        }
    }
    return grammar.size();
}

}  // namespace

void check_grammar_limits(std::string_view grammar) {
    if (grammar.size() > max_bytes) refuse("bytes", grammar.size(), max_bytes);
    std::size_t n_rules = 0;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < grammar.size();) {
        const std::size_t behind = skip_text(grammar, i);
        if (behind > i) {
            i = behind;
            continue;
        }
        if (grammar.substr(i).starts_with("::=")) ++n_rules;
        if (rule_signs.find(grammar[i]) != std::string_view::npos) ++n_rules;
        if (grammar[i] == '(' && ++depth > max_depth) refuse("groups within each other", depth, max_depth);
        if (grammar[i] == ')' && depth > 0) --depth;
        ++i;
    }
    if (n_rules > max_rules) refuse("rules, groups and repetitions", n_rules, max_rules);
}

}  // namespace paddock
