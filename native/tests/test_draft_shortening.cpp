// Drafts that are there, cut to what pays in one cycle (11 §17.7 on the rows that a cycle really has).
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/speculation/depth_control.h"

using namespace paddock;

namespace {

constexpr DraftType text = DraftType::ngram_simple;
constexpr std::int32_t n_slots = 8;
using Founds = std::vector<DepthControl::Found>;

/// A device that takes rows by eight; drafts of two tokens that are all right.
struct Blocks {
    std::vector<SequenceId> ids;
    DepthControl control{{}, n_slots};
    bool is_pure = true;

    Blocks() {
        for (SequenceId id = 0; id < n_slots; ++id) {
            ids.push_back(id);
            control.begin(id, text, {2, 0, 0.0F, 0.0F, "exact", true, "profit"}, false);
        }
    }
    /// A cycle in which the first slots find as many tokens as may be drafted; what is used of them.
    Founds cycle(std::int32_t n_finding) {
        control.start_cycle(ids, 100);
        Founds drafts;
        for (const SequenceId id : ids) {
            const std::int32_t cap = control.is_baseline_probe() ? 0 : control.cap(id, text, true);
            if (cap > 0) {
                drafts.push_back({id, id < n_finding ? cap : 0});
            }
        }
        control.shorten(drafts, text);
        DepthControl::Cycle cycle{.is_pure = is_pure, .rows = n_slots, .n_memory_tokens = 100};
        for (const auto& draft : drafts) {
            control.on_verified(draft.slot, text, draft.size, draft.size, draft.size, draft.size);
            cycle.rows += draft.size;
            cycle.n_drafting += draft.size > 0 ? 1 : 0;
        }
        const std::int32_t n_blocks = (cycle.rows + 7) / 8;
        cycle.model_ms = 10.0 + 23.2 * n_blocks;
        control.end_cycle(cycle);
        return drafts;
    }
    /// Until all slots draft and the costs of one slot's drafts are known, too.
    void learn() {
        for (int i = 0; i < 400; ++i) {
            cycle(i % 8 == 7 ? 1 : n_slots);
        }
    }
};

std::int32_t rows_of(const Founds& drafts) {
    std::int32_t rows = 0;
    for (const auto& draft : drafts) {
        rows += draft.size;
    }
    return rows;
}

/// Of some cycles, so that a trial in one of them does not matter.
std::int32_t usual_rows(Blocks& blocks, std::int32_t n_finding) {
    std::vector<std::int32_t> rows;
    rows.reserve(5);
    for (int i = 0; i < 5; ++i) {
        rows.push_back(rows_of(blocks.cycle(n_finding)));
    }
    std::ranges::sort(rows);
    return rows[2];
}

}  // namespace

TEST_CASE("what pays while all slots draft is left out where one does") {
    Blocks blocks;
    blocks.learn();
    CHECK(usual_rows(blocks, n_slots) >= 8);
    CHECK(usual_rows(blocks, 1) == 0);
}

TEST_CASE("a slot that is forgotten finds as often as all slots do") {
    const auto gain_alone = [](bool is_forgotten) {
        Blocks blocks;
        blocks.learn();
        constexpr SequenceId last = n_slots - 1;
        for (int i = 0; i < 100; ++i) {
            blocks.cycle(last);
        }
        if (is_forgotten) {
            blocks.control.reset(last);
        }
        blocks.ids = {last};
        blocks.cycle(0);
        return blocks.control.view(last, text).gain;
    };
    CHECK(gain_alone(false) < 0.1);
    CHECK(gain_alone(true) > 0.5);
}

TEST_CASE("drafts stay whole while nothing is known of costs, and as trials") {
    DepthControl control({}, 2);
    const std::vector<SequenceId> ids{0, 1};
    for (const SequenceId id : ids) {
        control.begin(id, text, {4, 0, 0.0F, 0.0F, "exact", true, "profit"}, false);
    }
    control.start_cycle(ids, 100);
    Founds drafts{{0, 4}, {1, 3}};
    control.shorten(drafts, text);
    CHECK(drafts[0].size == 4);
    CHECK(drafts[1].size == 3);
}

TEST_CASE("drafts stay whole where the costs of their rows are not known") {
    Blocks blocks;
    blocks.learn();
    blocks.control.forget_costs();
    // Cycles in which nobody was asked for a draft.
    for (std::int32_t i = 0; i < DepthParams().min_samples; ++i) {
        blocks.control.start_cycle(blocks.ids, 100);
        blocks.control.end_cycle(
            {.is_pure = true, .rows = n_slots, .model_ms = 33.2, .n_memory_tokens = 100});
    }
    CHECK(rows_of(blocks.cycle(n_slots)) >= 8);
}

TEST_CASE("a slot at its base has a draft left whole now and then, within the time for trials") {
    Blocks blocks;
    blocks.learn();
    // Nothing is learnt of costs, so that the depths stay.
    blocks.is_pure = false;
    std::int32_t n_rows = 0;
    for (int i = 0; i < 1000; ++i) {
        n_rows += rows_of(blocks.cycle(1));
    }
    CHECK(blocks.control.view(0, text).depth == 2);
    CHECK(n_rows >= 2);
    // A look takes 15 ms besides what its tokens are worth; the purse holds four cycles of 33 ms.
    CHECK(n_rows <= 2 * 4 * 33 / 15 + 2);
}

TEST_CASE("a draft that branches is used whole") {
    Blocks blocks;
    blocks.learn();
    blocks.control.start_cycle(blocks.ids, 100);
    Founds drafts{{0, 2, true}};
    blocks.control.shorten(drafts, text);
    CHECK(drafts[0].size == 2);
}

TEST_CASE("slots that are not there change nothing") {
    DepthControl control({}, 1);
    Founds drafts{{7, 3}, {-1, 3}};
    control.shorten(drafts, text);
    CHECK(drafts[0].size == 3);
    CHECK(drafts[1].size == 3);
}
