#include "core/speculation/ngram_drafter.h"

#include <algorithm>

namespace paddock {

std::vector<Draft> NgramDrafter::draft(std::span<const DraftRequest> requests) {
    std::vector<Draft> drafts(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Draft& draft = drafts[i];
        draft.type = type();
        if (requests[i].limit <= 0) {
            continue;
        }
        propose(requests[i], draft.tokens);
        draft.cut(requests[i].limit);
        const auto media =
            std::find_if(draft.tokens.begin(), draft.tokens.end(), [](Token t) { return t < 0; });
        draft.tokens.erase(media, draft.tokens.end());
    }
    return drafts;
}

std::size_t unchanged_length(std::span<const Token> known, std::span<const Token> tokens) {
    if (known.empty() || (known.size() <= tokens.size() && known.back() == tokens[known.size() - 1])) {
        return known.size();
    }
    return common_length(known, tokens);
}

std::size_t common_length(std::span<const Token> known, std::span<const Token> tokens) {
    const auto [end, other] = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end());
    return static_cast<std::size_t>(end - known.begin());
}

}  // namespace paddock
