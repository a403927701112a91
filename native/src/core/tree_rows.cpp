#include "core/tree_rows.h"

namespace paddock {

void add_tree_rows(Batch& batch, Slot& slot) {
    const Draft& draft = slot.request->draft;
    const Position root = slot.n_tokens() + slot.rows_in_batch;
    const auto chains = draft.tree.chains_of_nodes();
    for (std::int32_t i = 0; i < draft.tree.size(); ++i) {
        const DraftTree::Node& node = draft.tree[i];
        std::vector<SequenceId> branches;
        for (const std::int32_t chain : chains[static_cast<std::size_t>(i)]) {
            branches.push_back(draft.first_branch + chain);
        }
        OwnedRow& row = node.chain < 0
                            ? batch.add(slot, node.token)
                            : batch.add_side(slot, node.token, root + node.depth, branches.front());
        if (node.chain >= 0) {
            branches.erase(branches.begin());
        }
        row.row.branches = std::move(branches);
        row.row.output = true;
        row.is_verify = true;
    }
}

}  // namespace paddock
