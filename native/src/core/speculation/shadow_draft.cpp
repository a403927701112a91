#include "core/speculation/shadow_draft.h"

#include <algorithm>

namespace paddock {

void ShadowDraft::open(std::span<const Token> tokens, std::size_t n_text, std::int32_t n_told) {
    tokens_.assign(tokens.begin(), tokens.end());
    start_ = n_text + 1;
    n_told_ = static_cast<std::size_t>(std::max(0, n_told));
}

std::optional<ShadowDraft::Outcome> ShadowDraft::compare(std::span<const Token> text, Token pending) {
    const auto token_at = [&](std::size_t place) { return place < text.size() ? text[place] : pending; };
    const std::size_t n_known = text.size() + 1 > start_ ? text.size() + 1 - start_ : 0;
    const std::size_t n_compared = std::min(n_known, tokens_.size());
    std::size_t n_right = 0;
    while (n_right < n_compared && tokens_[n_right] == token_at(start_ + n_right)) {
        ++n_right;
    }
    const std::size_t n_examined = std::min(n_compared, n_right + 1);
    const std::size_t n_told = n_told_;
    n_told_ = std::max(n_told, n_examined);
    if (n_right < n_compared || n_compared == tokens_.size()) {
        close();
    }
    if (n_examined <= n_told) {
        return std::nullopt;
    }
    return Outcome{static_cast<std::int32_t>(n_told), static_cast<std::int32_t>(n_right),
                   static_cast<std::int32_t>(n_examined)};
}

}  // namespace paddock
