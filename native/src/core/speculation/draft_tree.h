// A draft with side chains, as rows of one decode (11 §12). Knows neither model nor slot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/types.h"

namespace paddock {

/// Other tokens that may follow a node of the main path.
struct SideChain {
    /// Depth of that node; 0: the pending token.
    std::int32_t hang_depth = 0;
    std::vector<Token> tokens;
    /// Logarithm of the chance that the drafter gives to its first token, the path before it included.
    double score = 0.0;
};

/// What bounds a tree.
struct TreeRoom {
    /// Nodes behind the pending token, the main path included.
    std::int32_t n_nodes = 0;
    /// Tokens from the pending one to the deepest node, without the former.
    std::int32_t depth = 0;
    /// Side chains: each takes a sequence of its own.
    std::int32_t n_chains = 0;
};

/// Nodes that a tree may have behind the pending token (11 §12.4); `base`: tokens of the request's depth
/// before it adapts.
std::int32_t node_budget(std::int32_t base, std::int32_t branch_budget, std::int32_t topk,
                         std::int32_t n_batch, std::int32_t n_ubatch);

/// Node 0 is the pending token, nodes 1 … `n_main()` are the main path, the side chains follow one after
/// another by rising hang depth. A node comes behind its parent.
class DraftTree {
  public:
    struct Node {
        Token token = 0;
        std::int32_t parent = -1;
        std::int32_t depth = 0;
        /// Chain that it belongs to, from 0 on; -1: root and main path.
        std::int32_t chain = -1;
    };

    DraftTree() = default;
    /// The best chains that there is room for; of equal score the one that hangs less deep, then the earlier
    /// one. What a chain shares with a better one or with the main path is shared by the tree; one that says
    /// nothing else is left out.
    DraftTree(Token pending, std::span<const Token> main_path, std::vector<SideChain> chains,
              const TreeRoom& room);

    /// No side chain was found.
    bool empty() const { return n_chains_ == 0; }
    std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
    std::int32_t n_main() const { return n_main_; }
    std::int32_t n_chains() const { return n_chains_; }
    std::int32_t n_side_nodes() const { return size() - 1 - n_main_; }
    std::int32_t deepest() const;
    const Node& operator[](std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

    bool has_child(std::int32_t node) const;
    /// The first child that stands for this token.
    std::optional<std::int32_t> child(std::int32_t node, Token token) const;
    /// The node at this depth on the way to `node`, which is at least as deep.
    std::int32_t ancestor(std::int32_t node, std::int32_t depth) const;
    /// Tokens of the main path on the way to `node`.
    std::int32_t n_on_main(std::int32_t node) const;
    /// For each node the chains whose way from the root leads through it, its own first.
    std::vector<std::vector<std::int32_t>> chains_of_nodes() const;

  private:
    void lay_out(std::vector<Node> grown, const std::vector<std::int32_t>& hang_depths);

    std::vector<Node> nodes_;
    std::int32_t n_main_ = 0;
    std::int32_t n_chains_ = 0;
};

/// How memory comes to hold the tokens that stand, and only those, in the slot's own sequence (11 §12.10).
struct TreeCommit {
    struct Copy {
        std::int32_t chain = 0;
        Position from = 0;
        Position to = 0;
    };
    /// The slot's sequence loses everything from here on.
    Position remove_from = 0;
    /// Then it gets this range of a chain's sequence.
    std::optional<Copy> copy;
};

/// The walk ended at `last_node` and emitted `n_emitted` tokens, at least 1; the root is at `position`.
TreeCommit plan_commit(const DraftTree& tree, std::int32_t last_node, std::int32_t n_emitted,
                       Position position);

}  // namespace paddock
