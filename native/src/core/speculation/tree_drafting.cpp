#include "core/speculation/tree_drafting.h"

#include <algorithm>
#include <utility>

namespace paddock {

namespace {

/// With the drafted token alone there would be nothing to branch to.
constexpr std::int32_t least_topk = 2;

constexpr const char* no_branch_ids = "tree-no-branch-ids";
constexpr const char* single_path = "tree-single-path";

}  // namespace

std::string tree_obstacle(const SpeculationParams& params, const ContextFacts& facts) {
    if (facts.is_recurrent || facts.is_hybrid || facts.removal != Removal::partial) {
        return "tree-recurrent";
    }
    if (!facts.kv_unified) {
        return "tree-needs-unified-kv";
    }
    if (facts.has_multi_positions) {
        return "tree-multi-position";
    }
    if (!makes_side_chains(params)) {
        return single_path;
    }
    return facts.n_branch_ids > 0 ? "" : no_branch_ids;
}

TreeDrafting::TreeDrafting(DecodeState& state, std::string reason)
    : state_(state),
      params_(state.params.speculation),
      reason_(params_.branch_budget > 0 ? std::move(reason) : ""),
      topk_(std::max(params_.topk, least_topk)) {
    if (!reason_.empty()) {
        state.log(log_warning, "drafts have no side chains: " + reason_);
    } else if (is_on() && topk_ != params_.topk) {
        state.log(log_info, "--spec-draft-topk is " + std::to_string(params_.topk) + "; side chains need " +
                                std::to_string(topk_) + ", which is used");
    }
}

DraftRequest TreeDrafting::asking(DraftRequest request) const {
    if (is_on()) {
        request.temperature = 0.0F;
        request.n_ranks = topk_;
        request.p_split = params_.p_split;
    }
    return request;
}

void TreeDrafting::grow(Slot& slot, const DraftRequest& asked, std::int32_t base, TreeShare& share) {
    Draft& draft = slot.request->draft;
    std::string& reason = slot.request->speculation.tree_reason;
    const ContextFacts& facts = state_.facts();
    if (!is_on()) {
        return;
    }
    const std::int32_t n_free = facts.n_branch_ids - n_lent_;
    if (n_free <= 0) {
        reason = no_branch_ids;
        return;
    }
    const std::int32_t n_nodes =
        node_budget(base, params_.branch_budget, topk_, facts.n_batch, facts.n_ubatch);
    draft.tree = DraftTree(asked.pending, draft.tokens, std::exchange(draft.side_chains, {}),
                           {.n_nodes = std::min(n_nodes, draft.size() + std::max(0, share.n_rows)),
                            .depth = asked.limit,
                            // The slots that come later want some, too.
                            .n_chains = (n_free + share.n_slots - 1) / share.n_slots});
    if (draft.tree.empty()) {
        draft.tree = {};
        reason = single_path;
        return;
    }
    reason.clear();
    draft.first_branch = static_cast<SequenceId>(state_.slots.size()) + n_lent_;
    n_lent_ += draft.tree.n_chains();
    share.n_rows -= draft.tree.n_side_nodes();
}

void TreeDrafting::fork(std::span<const BatchRow> window) {
    for (const BatchRow& row : window) {
        for (const SequenceId branch : row.branches) {
            // The row of the pending token is the first, and carries all of its tree's.
            if (std::ranges::find(forked_, branch) == forked_.end()) {
                state_.context().copy(row.sequence, branch, 0, end_position);
                forked_.push_back(branch);
            }
        }
    }
}

void TreeDrafting::withdraw() {
    for (const SequenceId branch : std::exchange(forked_, {})) {
        state_.context().remove(branch, 0, end_position);
    }
}

std::optional<BranchRange> TreeDrafting::kept_branch(const Draft& draft, const Verified& verified,
                                                     Position root) {
    if (draft.tree.empty()) {
        return std::nullopt;
    }
    const TreeCommit commit = plan_commit(draft.tree, verified.last_node, verified.n_emitted, root);
    if (!commit.copy.has_value()) {
        return std::nullopt;
    }
    return BranchRange{
        .branch = draft.first_branch + commit.copy->chain, .from = commit.copy->from, .to = commit.copy->to};
}

bool TreeDrafting::take_over(const Slot& slot, const std::optional<BranchRange>& range) {
    if (!range.has_value()) {
        return true;
    }
    if (!state_.context().remove(slot.id, range->from, end_position)) {
        return false;
    }
    state_.context().copy(range->branch, slot.id, range->from, range->to);
    return true;
}

}  // namespace paddock
