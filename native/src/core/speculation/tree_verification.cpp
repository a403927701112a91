#include "core/speculation/tree_verification.h"

#include <optional>

namespace paddock {

namespace {

Verified walk(Sampler& sampler, const VerifyInput& input) {
    const DraftTree& tree = input.draft.tree;
    Verified result;
    while (true) {
        const auto logits = input.logits(result.last_node);
        const Token token = sampler.sample(logits);
        const std::optional<std::int32_t> next = tree.child(result.last_node, token);
        const bool is_leaf = !tree.has_child(result.last_node);
        sampler.accept(token, true);
        ++result.n_emitted;
        result.goes_on = input.emit(token, logits);
        if (!next.has_value()) {
            ++(is_leaf ? result.counts.bonus : result.counts.reject);
            result.n_examined = result.n_accepted + (is_leaf ? 0 : 1);
            result.n_covered = tree.deepest();
            return result;
        }
        result.last_node = *next;
        result.n_main = tree.n_on_main(*next);
        ++result.n_accepted;
        ++result.counts.exact;
        if (!result.goes_on || sampler.blocks_speculation(input.grammar_blocks)) {
            result.n_examined = result.n_covered = result.n_accepted;
            return result;
        }
    }
}

}  // namespace

Verified verify_tree(Sampler& sampler, const VerifyInput& input) {
    sampler.use_whole_rows(input.whole_rows);
    const Verified result = walk(sampler, input);
    sampler.use_whole_rows(false);
    return result;
}

Verified verify_draft(Sampler& sampler, const VerifyInput& input) {
    return input.draft.tree.empty() ? verify(sampler, input) : verify_tree(sampler, input);
}

}  // namespace paddock
