#include "core/speculation/draft_tree.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace paddock {

namespace {

constexpr std::int32_t main_chain = -1;

std::int32_t count_of(std::size_t size) { return static_cast<std::int32_t>(size); }

bool is_parent(std::span<const DraftTree::Node> nodes, std::int32_t index) {
    return std::ranges::find(nodes, index, &DraftTree::Node::parent) != nodes.end();
}

/// The first one; a node comes behind its parent.
std::optional<std::int32_t> child_of(std::span<const DraftTree::Node> nodes, std::int32_t parent,
                                     Token token) {
    for (auto i = static_cast<std::size_t>(parent) + 1; i < nodes.size(); ++i) {
        if (nodes[i].parent == parent && nodes[i].token == token) {
            return count_of(i);
        }
    }
    return std::nullopt;
}

/// A tree while it grows: its nodes are in the order in which they came.
class Growth {
  public:
    Growth(Token pending, std::span<const Token> main_path, const TreeRoom& room)
        : room_(room), main_leaf_(count_of(main_path.size())), nodes_{{.token = pending}} {
        for (const Token token : main_path) {
            add(token, count_of(nodes_.size()) - 1, main_chain);
        }
    }

    void add_chain(const SideChain& side) {
        if (side.hang_depth < 0 || side.hang_depth >= main_leaf_) {
            return;
        }
        // Nodes of the main path have the number of their depth.
        std::int32_t at = side.hang_depth;
        std::size_t next = 0;
        for (; next < side.tokens.size(); ++next) {
            const std::optional<std::int32_t> child = child_of(nodes_, at, side.tokens[next]);
            if (!child.has_value()) {
                break;
            }
            at = *child;
        }
        // How long the main path is was decided before: nothing follows its end.
        if (next == side.tokens.size() || at == main_leaf_ || !has_room_behind(at)) {
            return;
        }
        std::int32_t chain = node(at).chain;
        const bool ends_chain = chain != main_chain && !is_parent(nodes_, at);
        if (!ends_chain) {
            chain = count_of(hang_depths_.size());
            if (chain >= room_.n_chains) {
                return;
            }
            hang_depths_.push_back(node(at).depth);
        }
        for (; next < side.tokens.size() && has_room_behind(at); ++next) {
            add(side.tokens[next], at, chain);
            at = count_of(nodes_.size()) - 1;
        }
    }

    const std::vector<DraftTree::Node>& nodes() const { return nodes_; }
    /// Of each chain.
    const std::vector<std::int32_t>& hang_depths() const { return hang_depths_; }

  private:
    const DraftTree::Node& node(std::int32_t index) const { return nodes_[static_cast<std::size_t>(index)]; }
    bool has_room_behind(std::int32_t parent) const {
        return count_of(nodes_.size()) - 1 < room_.n_nodes && node(parent).depth < room_.depth;
    }
    void add(Token token, std::int32_t parent, std::int32_t chain) {
        nodes_.push_back({.token = token, .parent = parent, .depth = node(parent).depth + 1, .chain = chain});
    }

    TreeRoom room_;
    std::int32_t main_leaf_;
    std::vector<DraftTree::Node> nodes_;
    std::vector<std::int32_t> hang_depths_;
};

}  // namespace

std::int32_t node_budget(std::int32_t base, std::int32_t branch_budget, std::int32_t topk,
                         std::int32_t n_batch, std::int32_t n_ubatch) {
    const std::int64_t by_ranks = std::int64_t{base} * std::max(1, topk);
    const std::int64_t budget = std::min<std::int64_t>(std::int64_t{base} + branch_budget, by_ranks);
    return static_cast<std::int32_t>(
        std::min<std::int64_t>({budget, std::max(0, n_batch - 1), std::max(0, n_ubatch - 1)}));
}

DraftTree::DraftTree(Token pending, std::span<const Token> main_path, std::vector<SideChain> chains,
                     const TreeRoom& room)
    : n_main_(count_of(main_path.size())) {
    std::ranges::stable_sort(chains, [](const SideChain& a, const SideChain& b) {
        return a.score != b.score ? a.score > b.score : a.hang_depth < b.hang_depth;
    });
    Growth growth(pending, main_path, room);
    for (const SideChain& chain : chains) {
        growth.add_chain(chain);
    }
    lay_out(growth.nodes(), growth.hang_depths());
}

void DraftTree::lay_out(std::vector<Node> grown, const std::vector<std::int32_t>& hang_depths) {
    n_chains_ = count_of(hang_depths.size());
    std::vector<std::int32_t> by_depth(hang_depths.size());
    std::iota(by_depth.begin(), by_depth.end(), 0);
    std::ranges::stable_sort(
        by_depth, {}, [&](std::int32_t chain) { return hang_depths[static_cast<std::size_t>(chain)]; });
    std::vector<std::int32_t> places(hang_depths.size());
    for (std::size_t place = 0; place < by_depth.size(); ++place) {
        places[static_cast<std::size_t>(by_depth[place])] = count_of(place);
    }
    for (Node& node : grown) {
        node.chain = node.chain < 0 ? node.chain : places[static_cast<std::size_t>(node.chain)];
    }
    std::vector<std::int32_t> order(grown.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {},
                             [&](std::int32_t node) { return grown[static_cast<std::size_t>(node)].chain; });
    std::vector<std::int32_t> numbers(grown.size());
    for (std::size_t number = 0; number < order.size(); ++number) {
        numbers[static_cast<std::size_t>(order[number])] = count_of(number);
    }
    nodes_.reserve(grown.size());
    for (const std::int32_t old : order) {
        Node& node = nodes_.emplace_back(grown[static_cast<std::size_t>(old)]);
        node.parent = node.parent < 0 ? node.parent : numbers[static_cast<std::size_t>(node.parent)];
    }
}

std::int32_t DraftTree::deepest() const {
    return nodes_.empty() ? 0 : std::ranges::max_element(nodes_, {}, &Node::depth)->depth;
}

bool DraftTree::has_child(std::int32_t node) const { return is_parent(nodes_, node); }

std::optional<std::int32_t> DraftTree::child(std::int32_t node, Token token) const {
    return child_of(nodes_, node, token);
}

std::int32_t DraftTree::ancestor(std::int32_t node, std::int32_t depth) const {
    while ((*this)[node].depth > depth) {
        node = (*this)[node].parent;
    }
    return node;
}

std::int32_t DraftTree::n_on_main(std::int32_t node) const {
    while ((*this)[node].chain >= 0) {
        node = (*this)[node].parent;
    }
    return (*this)[node].depth;
}

std::vector<std::vector<std::int32_t>> DraftTree::chains_of_nodes() const {
    std::vector<std::vector<std::int32_t>> chains(nodes_.size());
    for (std::int32_t i = 0; i < size(); ++i) {
        if ((*this)[i].chain >= 0) {
            chains[static_cast<std::size_t>(i)].push_back((*this)[i].chain);
        }
    }
    for (std::int32_t chain = 0; chain < n_chains_; ++chain) {
        const auto first = std::ranges::find(nodes_, chain, &Node::chain);
        for (std::int32_t node = first->parent; node >= 0; node = (*this)[node].parent) {
            chains[static_cast<std::size_t>(node)].push_back(chain);
        }
    }
    return chains;
}

TreeCommit plan_commit(const DraftTree& tree, std::int32_t last_node, std::int32_t n_emitted,
                       Position position) {
    // The last emitted token is pending, and the one before it is the deepest in memory.
    const std::int32_t kept = tree.ancestor(last_node, n_emitted - 1);
    const std::int32_t n_kept = tree[kept].depth + 1;
    if (tree[kept].chain < 0) {
        return {.remove_from = position + n_kept, .copy = std::nullopt};
    }
    const Position own = position + tree.n_on_main(kept) + 1;
    return {.remove_from = own,
            .copy = TreeCommit::Copy{.chain = tree[kept].chain, .from = own, .to = position + n_kept}};
}

}  // namespace paddock
