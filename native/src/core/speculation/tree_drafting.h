// Trees within the cycle: which drafts become one, and the sequences that their side chains live in for the
// time of a decode (11 §12). Used by the decode thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/decode_state.h"
#include "core/speculation/speculation_params.h"
#include "core/speculation/verification.h"

namespace paddock {

/// Why no draft of this model may have side chains; empty: they may. For params whose branch budget is above
/// 0.
std::string tree_obstacle(const SpeculationParams& params, const ContextFacts& facts);

/// Part of a branch's sequence that the slot's own takes over.
struct BranchRange {
    SequenceId branch = 0;
    Position from = 0;
    Position to = 0;
};

/// What the trees of a cycle may still take of what all slots share.
struct TreeShare {
    /// Rows of the batch that nobody needs.
    std::int32_t n_rows = 0;
    /// Drafts that may become trees.
    std::int32_t n_slots = 1;
};

class TreeDrafting {
  public:
    /// `reason`: what `tree_obstacle` says; not looked at while no trees were asked for.
    TreeDrafting(DecodeState& state, std::string reason);

    /// Of every draft; empty where there may be trees, or none were asked for.
    const std::string& reason() const { return reason_; }

    /// All sequences are free again.
    void start_cycle() { n_lent_ = 0; }
    /// The request, for the drafter's likeliest tokens and what else it could be (11 §12.5).
    DraftRequest asking(DraftRequest request) const;
    /// Makes a tree of the slot's draft where there are side chains, or leaves it flat and says why.
    /// `base`: as in `node_budget`; `share`: with this slot still in it, and then without its rows.
    void grow(Slot& slot, const DraftRequest& asked, std::int32_t base, TreeShare& share);

    /// Before a decode: the side chains of the window's trees know what their slots know.
    void fork(std::span<const BatchRow> window);
    /// Their sequences are empty again. After a decode that failed, or once what stands was taken over.
    void withdraw();

    /// What of a side chain stands after a verification; nothing: the main path has it all. `root`: position
    /// of the pending token.
    static std::optional<BranchRange> kept_branch(const Draft& draft, const Verified& verified,
                                                  Position root);
    /// The slot's own sequence holds it from now on. False: its memory can't be cut.
    bool take_over(const Slot& slot, const std::optional<BranchRange>& range);

  private:
    bool is_on() const { return params_.branch_budget > 0 && reason_.empty(); }

    DecodeState& state_;
    const SpeculationParams& params_;
    std::string reason_;
    std::int32_t topk_;
    /// In this cycle.
    std::int32_t n_lent_ = 0;
    /// Sequences that hold something.
    std::vector<SequenceId> forked_;
};

}  // namespace paddock
