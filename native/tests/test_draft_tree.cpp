// Trees as rows: what grows, which sequences a row belongs to, and what of memory stays (11 §12).
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "core/speculation/draft_tree.h"
#include "core/speculation/tree_verification.h"
#include "fake_sampler.h"

using namespace paddock;

namespace {

constexpr Token pending = 9;
constexpr TreeRoom ample{.n_nodes = 64, .depth = 64, .n_chains = 8};

std::vector<std::int32_t> parents_of(const DraftTree& tree) {
    std::vector<std::int32_t> parents;
    for (std::int32_t i = 0; i < tree.size(); ++i) {
        parents.push_back(tree[i].parent);
    }
    return parents;
}

std::vector<Token> tokens_of(const DraftTree& tree) {
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < tree.size(); ++i) {
        tokens.push_back(tree[i].token);
    }
    return tokens;
}

/// Rows in which each token is the greatest once, in this order.
std::vector<std::vector<float>> rows_for(const std::vector<Token>& greatest) {
    std::vector<std::vector<float>> rows;
    for (const Token token : greatest) {
        rows.emplace_back(32, 0.0F)[static_cast<std::size_t>(token)] = 10.0F;
    }
    return rows;
}

struct Walk {
    std::shared_ptr<FakeSamplerNotes> notes = std::make_shared<FakeSamplerNotes>();
    FakeSampler sampler{notes};
    std::vector<Token> emitted;
    std::size_t most = 100;
    std::size_t blocks_at = 100;

    /// `choices`: what the target says at each node.
    Verified run(const DraftTree& tree, const std::vector<Token>& choices) {
        Draft draft;
        draft.tree = tree;
        const std::vector<std::vector<float>> rows = rows_for(choices);
        return verify_tree(sampler,
                           {.draft = draft,
                            .logits =
                                [&](std::int32_t node) {
                                    return std::span<const float>(rows[static_cast<std::size_t>(node)]);
                                },
                            .emit =
                                [&](Token token, std::span<const float>) {
                                    emitted.push_back(token);
                                    notes->blocks_speculation = emitted.size() >= blocks_at;
                                    return emitted.size() < most;
                                }});
    }
};

}  // namespace

TEST_CASE("a budget of nodes is that of the depth, of the ranks and of a batch") {
    CHECK(node_budget(16, 8, 2, 2048, 512) == 24);
    CHECK(node_budget(16, 8, 1, 2048, 512) == 16);
    CHECK(node_budget(16, 8, 0, 2048, 512) == 16);
    CHECK(node_budget(16, 8, 1, 2048, 16) == 15);
    CHECK(node_budget(3, 64, 3, 2048, 512) == 9);
    CHECK(node_budget(16, 8, 2, 0, 512) == 0);
}

TEST_CASE("the main path comes first, and what hangs from it behind") {
    const DraftTree flat(pending, std::vector<Token>{1, 2, 3}, {}, ample);
    CHECK(flat.empty());
    CHECK(parents_of(flat) == std::vector<std::int32_t>{-1, 0, 1, 2});
    const DraftTree tree(pending, std::vector<Token>{1, 2}, {{.hang_depth = 0, .tokens = {5}}}, ample);
    CHECK(tree.n_chains() == 1);
    CHECK(parents_of(tree) == std::vector<std::int32_t>{-1, 0, 1, 0});
    CHECK(tokens_of(tree) == std::vector<Token>{pending, 1, 2, 5});
    CHECK(tree[3].depth == 1);
}

TEST_CASE("the likeliest chains are taken, until nodes or sequences end") {
    const std::vector<SideChain> chains{{.hang_depth = 0, .tokens = {4}, .score = -2.0},
                                        {.hang_depth = 1, .tokens = {5}, .score = -1.0},
                                        {.hang_depth = 2, .tokens = {6}, .score = -2.0},
                                        {.hang_depth = 0, .tokens = {7}, .score = -2.0}};
    const std::vector<Token> main_path{1, 2, 3};
    const auto taken = [&](std::int32_t n_nodes, std::int32_t n_chains) {
        const DraftTree tree(pending, main_path, chains,
                             {.n_nodes = n_nodes, .depth = 8, .n_chains = n_chains});
        std::vector<Token> side = tokens_of(tree);
        side.erase(side.begin(), side.begin() + 4);
        return side;
    };
    CHECK(taken(64, 8) == std::vector<Token>{4, 7, 5, 6});
    CHECK(taken(5, 8) == std::vector<Token>{4, 5});
    CHECK(taken(64, 1) == std::vector<Token>{5});
    CHECK(taken(6, 8) == std::vector<Token>{4, 7, 5});
    CHECK(taken(3, 8).empty());
    CHECK(taken(64, 0).empty());
}

TEST_CASE("side chains end where the tree may be no deeper, and with its nodes") {
    const std::vector<SideChain> chains{{.hang_depth = 0, .tokens = {4, 5, 6, 7, 8}}};
    const std::vector<Token> main_path{1, 2};
    CHECK(DraftTree(pending, main_path, chains, {.n_nodes = 64, .depth = 3, .n_chains = 1}).deepest() == 3);
    CHECK(DraftTree(pending, main_path, chains, {.n_nodes = 4, .depth = 8, .n_chains = 1}).size() == 5);
}

TEST_CASE("what chains share with the main path and with each other is in the tree once") {
    const std::vector<SideChain> chains{{.hang_depth = 0, .tokens = {1, 2, 6, 7}, .score = -1.0},
                                        {.hang_depth = 0, .tokens = {1, 2, 6, 8}, .score = -2.0},
                                        {.hang_depth = 0, .tokens = {5}, .score = -3.0},
                                        {.hang_depth = 0, .tokens = {1, 2}, .score = -4.0},
                                        {.hang_depth = 0, .tokens = {1, 2, 3, 4}, .score = -4.0},
                                        {.hang_depth = 0, .tokens = {5, 6}, .score = -5.0}};
    const DraftTree tree(pending, std::vector<Token>{1, 2, 3}, chains, ample);
    // In the order of where they hang: 5 6 at the root, 6 7 behind 1 2, and 8 behind 6.
    CHECK(tokens_of(tree) == std::vector<Token>{pending, 1, 2, 3, 5, 6, 6, 7, 8});
    CHECK(parents_of(tree) == std::vector<std::int32_t>{-1, 0, 1, 2, 0, 4, 2, 6, 6});
    CHECK(tree.n_chains() == 3);
    const auto chains_of = tree.chains_of_nodes();
    CHECK(chains_of[0] == std::vector<std::int32_t>{0, 1, 2});
    CHECK(chains_of[2] == std::vector<std::int32_t>{1, 2});
    CHECK(chains_of[3].empty());
    CHECK(chains_of[6] == std::vector<std::int32_t>{1, 2});
    CHECK(chains_of[7] == std::vector<std::int32_t>{1});
    CHECK(chains_of[8] == std::vector<std::int32_t>{2});
}

TEST_CASE("chains that hang nowhere are left out") {
    const std::vector<SideChain> chains{{.hang_depth = -1, .tokens = {4}},
                                        {.hang_depth = 2, .tokens = {5}},
                                        {.hang_depth = 7, .tokens = {6}},
                                        {.hang_depth = 0, .tokens = {}}};
    CHECK(DraftTree(pending, std::vector<Token>{1, 2}, chains, ample).empty());
    CHECK(DraftTree(pending, {}, {{.hang_depth = 0, .tokens = {4}}}, ample).empty());
}

TEST_CASE("a walk follows the target's choices through the tree") {
    // 1 2 3, behind 1 also 6.
    const DraftTree tree(pending, std::vector<Token>{1, 2, 3}, {{.hang_depth = 1, .tokens = {6}}}, ample);
    Walk walk;
    SUBCASE("along the main path") {
        const Verified found = walk.run(tree, {1, 2, 3, 8, 0});
        CHECK(walk.emitted == std::vector<Token>{1, 2, 3, 8});
        CHECK(found.last_node == 3);
        CHECK(found.n_accepted == 3);
        CHECK(found.counts.exact == 3);
        CHECK(found.counts.bonus == 1);
    }
    SUBCASE("onto a side chain, whose own end gives a bonus") {
        const Verified found = walk.run(tree, {1, 6, 0, 0, 8});
        CHECK(walk.emitted == std::vector<Token>{1, 6, 8});
        CHECK(found.last_node == 4);
        CHECK(found.n_examined == 2);
        CHECK(found.counts.bonus == 1);
        CHECK(found.counts.reject == 0);
        CHECK(tree.n_on_main(found.last_node) == 1);
    }
    SUBCASE("nowhere") {
        const Verified found = walk.run(tree, {5, 0, 0, 0, 0});
        CHECK(walk.emitted == std::vector<Token>{5});
        CHECK(found.n_accepted == 0);
        CHECK(found.n_examined == 1);
        CHECK(found.n_covered == 3);
        CHECK(found.counts.reject == 1);
    }
    SUBCASE("until the request ends") {
        walk.most = 2;
        const Verified found = walk.run(tree, {1, 6, 0, 0, 8});
        CHECK(walk.emitted == std::vector<Token>{1, 6});
        CHECK(!found.goes_on);
        CHECK(found.n_covered == 2);
        CHECK(found.counts.bonus == 0);
    }
    SUBCASE("until the sampler blocks") {
        walk.blocks_at = 1;
        const Verified found = walk.run(tree, {1, 6, 0, 0, 8});
        CHECK(walk.emitted == std::vector<Token>{1});
        CHECK(found.goes_on);
    }
}

TEST_CASE("what stands of a side chain moves into the slot's sequence") {
    constexpr Position root = 100;
    const DraftTree tree(pending, std::vector<Token>{1, 2, 3}, {{.hang_depth = 1, .tokens = {6, 7}}}, ample);
    SUBCASE("node, side node and a bonus") {
        const TreeCommit commit = plan_commit(tree, 4, 3, root);
        CHECK(commit.remove_from == root + 2);
        REQUIRE(commit.copy);
        CHECK(commit.copy->chain == 0);
        CHECK(commit.copy->from == root + 2);
        CHECK(commit.copy->to == root + 3);
    }
    SUBCASE("cut at the side node: it is pending, and nothing of the chain is in memory") {
        const TreeCommit commit = plan_commit(tree, 4, 2, root);
        CHECK(commit.remove_from == root + 2);
        CHECK(!commit.copy);
    }
    SUBCASE("cut one token deeper") {
        const TreeCommit commit = plan_commit(tree, 5, 3, root);
        REQUIRE(commit.copy);
        CHECK(commit.copy->to == root + 3);
    }
    SUBCASE("the main path") {
        CHECK(plan_commit(tree, 3, 4, root).remove_from == root + 4);
        CHECK(plan_commit(tree, 0, 1, root).remove_from == root + 1);
        CHECK(!plan_commit(tree, 2, 3, root).copy);
    }
}

TEST_CASE("a chain of a chain has all of its way in its own sequence") {
    const std::vector<SideChain> chains{{.hang_depth = 0, .tokens = {5, 6, 7}, .score = -1.0},
                                        {.hang_depth = 0, .tokens = {5, 8, 9}, .score = -2.0}};
    const DraftTree tree(pending, std::vector<Token>{1, 2, 3}, chains, ample);
    const auto last = tree.child(*tree.child(*tree.child(0, 5), 8), 9);
    REQUIRE(last);
    const TreeCommit commit = plan_commit(tree, *last, 4, 20);
    CHECK(commit.remove_from == 21);
    REQUIRE(commit.copy);
    CHECK(commit.copy->chain == 1);
    CHECK(commit.copy->from == 21);
    CHECK(commit.copy->to == 24);
}
