#include "core/speculation/ngram_drafter.h"

#include <algorithm>

namespace paddock {

namespace {

void end_at_media(std::vector<Token>& tokens) {
    tokens.erase(std::ranges::find_if(tokens, [](Token token) { return token < 0; }), tokens.end());
}

}  // namespace

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
        end_at_media(draft.tokens);
        if (requests[i].n_ranks > 1 && !draft.empty()) {
            draft.side_chains = others(requests[i]);
            for (SideChain& chain : draft.side_chains) {
                end_at_media(chain.tokens);
            }
        }
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
