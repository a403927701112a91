#include "core/speculation/ngram_simple.h"

#include <algorithm>

namespace paddock {

NgramSimple::NgramSimple(NgramLengths lengths, std::int32_t /*n_slots*/) : lengths_(lengths) {}

void NgramSimple::propose(const DraftRequest& request, std::vector<Token>& tokens) {
    const auto text = request.tokens;
    const auto n = static_cast<std::size_t>(lengths_.n);
    const auto m = static_cast<std::size_t>(lengths_.m);
    if (text.size() <= n + m + 1) {
        return;
    }
    prepare(request);
    const std::size_t found = find(text);
    if (found == 0) {
        return;
    }
    const auto followers = text.subspan(found + n, std::min(m, text.size() - found - n));
    // Less than the pattern itself tells little; how much of it the caller wants is another matter.
    if (followers.size() >= n) {
        tokens.assign(followers.begin(), followers.end());
    }
}

void NgramSimple::prepare(const DraftRequest& request) {
    const auto n = static_cast<std::size_t>(lengths_.n);
    reversed_.assign(1, request.pending);
    reversed_.insert(reversed_.end(), request.tokens.rbegin(),
                     request.tokens.rbegin() + static_cast<std::ptrdiff_t>(n - 1));
    fallback_.assign(n, 0);
    for (std::size_t i = 1, matched = 0; i < n; ++i) {
        while (matched > 0 && reversed_[matched] != reversed_[i]) {
            matched = fallback_[matched - 1];
        }
        matched += reversed_[matched] == reversed_[i] ? 1 : 0;
        fallback_[i] = matched;
    }
}

std::size_t NgramSimple::find(std::span<const Token> text) const {
    // Knuth-Morris-Pratt from the end: a text that is full of near matches takes no longer than another one.
    // The pattern's own place and position 0 are no matches.
    const std::size_t n = reversed_.size();
    const auto backwards = text.subspan(1, text.size() - 2);
    std::size_t matched = 0;
    for (auto token = backwards.rbegin(); token != backwards.rend(); ++token) {
        if (matched == 0) {
            // Most of a text is passed here, and fast.
            token = std::find(token, backwards.rend(), reversed_[0]);
            if (token == backwards.rend()) {
                return 0;
            }
        }
        while (matched > 0 && reversed_[matched] != *token) {
            matched = fallback_[matched - 1];
        }
        matched += reversed_[matched] == *token ? 1 : 0;
        if (matched == n) {
            return static_cast<std::size_t>(backwards.rend() - token);
        }
    }
    return 0;
}

}  // namespace paddock
