// The joint plan and the decision that follows from it (11 §17.6-17.8, §22 vectors 24-28).
#include <doctest/doctest.h>

#include <vector>

#include "core/speculation/acceptance_table.h"
#include "core/speculation/depth_decision.h"

using namespace paddock;

namespace {

struct Case {
    std::vector<std::vector<double>> gains;
    std::vector<double> cycle_ms;
    std::vector<PlanSlot> slots;
    PlanCosts costs;

    Case(const std::vector<std::vector<double>>& rates, std::vector<double> ms) : cycle_ms(std::move(ms)) {
        for (const auto& of_slot : rates) {
            double product = 1.0;
            auto& slot = gains.emplace_back();
            for (const double rate : of_slot) {
                slot.push_back(product *= rate);
            }
        }
        for (const auto& of_slot : gains) {
            slots.push_back({of_slot, 0});
        }
        costs.cycle_ms = cycle_ms;
        costs.draft.ms.fill(1.0);
        costs.draft.is_stepwise = true;
    }
    DepthPlan plan() const { return best_plan(slots, costs); }
    double score(std::vector<std::int32_t> depths) const { return score_of(slots, depths, costs); }
};

using Depths = std::vector<std::int32_t>;
const std::vector<double> two_slots_ms{11, 12, 13, 14.5, 16, 18, 20};

}  // namespace

TEST_CASE("one slot alone drafts to the depth with the highest score") {
    const Case one({{.8, .7, .6}}, {10, 11.5, 12.5, 13});
    CHECK(one.score({1}) == doctest::Approx(144.0));
    CHECK(one.score({2}) == doctest::Approx(162.76).epsilon(1e-4));
    CHECK(one.plan().depths == Depths{3});
    CHECK(one.plan().score == doctest::Approx(168.5));
    CHECK(gain_of(one.plan(), one.slots, one.costs) == doctest::Approx(.685));
}

TEST_CASE("two slots share the time of their drafts") {
    const Case two({{.8, .7, .6}, {.8, .7, .6}}, two_slots_ms);
    CHECK(two.plan().depths == Depths{2, 2});
    CHECK(two.plan().score == doctest::Approx(262.2).epsilon(1e-3));
    CHECK(two.score({0, 0}) == doctest::Approx(181.8).epsilon(1e-3));
    CHECK(two.score({3, 3}) == doctest::Approx(234.4).epsilon(1e-3));
}

TEST_CASE("a slot whose drafts fail leaves the rows to the other") {
    const Case two({{.9, .9, .9}, {.2, .2, .2}}, two_slots_ms);
    CHECK(two.plan().depths == Depths{3, 0});
    CHECK(two.plan().score == doctest::Approx(253.7).epsilon(1e-3));
    CHECK(two.score({3, 1}) == doctest::Approx(244.2).epsilon(1e-3));
}

TEST_CASE("a gain below the least one turns all slots off, after some decisions") {
    const Case two({{.3, .3, .3}, {.3, .3, .3}}, two_slots_ms);
    CHECK(two.plan().depths == Depths{1, 1});
    CHECK(two.plan().score == doctest::Approx(185.7).epsilon(1e-3));
    DepthParams params;
    std::int32_t off_dwell = 0;
    for (int i = 0; i < params.off_dwell - 1; ++i) {
        CHECK_FALSE(decide_depths(two.slots, Depths{1, 1}, two.costs, params, off_dwell).depths);
    }
    CHECK(decide_depths(two.slots, Depths{1, 1}, two.costs, params, off_dwell).depths == Depths{0, 0});
}

TEST_CASE("a slot that drafts a number or none gets the number when it pays as a whole") {
    Case one({std::vector<double>(8, .95)}, std::vector<double>(9, 10.0));
    one.slots[0].n_min = 6;
    one.costs.draft.is_stepwise = false;
    CHECK(one.plan().depths == Depths{8});
    one.cycle_ms.assign({10, 10, 10, 10, 10, 10, 60, 70, 80});
    one.costs.cycle_ms = one.cycle_ms;
    CHECK(one.plan().depths == Depths{0});
}

TEST_CASE("rows whose cost is unknown are not planned") {
    const Case one({{.9, .9, .9}}, {10, 10});
    CHECK(one.plan().depths == Depths{1});
    CHECK(one.score({2}) == 0.0);
}

TEST_CASE("equal scores go to fewer rows") {
    const Case one({{0.0, 0.0}}, {10, 10, 10});
    CHECK(one.plan().depths == Depths{0});
}

TEST_CASE("the table falls back on what is assumed, and leaves it as outcomes come in") {
    AcceptanceTable table;
    std::vector<double> gains(2);
    table.fill_gains(gains, 3);
    CHECK(gains[0] == doctest::Approx(.6));
    CHECK(gains[1] == doctest::Approx(.6 * .54));
    for (int i = 0; i < 1000; ++i) {
        table.add(1, 2, 64, .01, .2);
    }
    table.fill_gains(gains, 3);
    CHECK(gains[0] > .99);
    CHECK(gains[1] < .01);
}

TEST_CASE("a table takes in positions beyond its end and numbers below zero") {
    AcceptanceTable table;
    table.add(1000, 1000, 0, .1, .1);
    table.add(-1, -1, 0, .1, .1);
    std::vector<double> gains(100);
    table.fill_gains(gains, 3);
    CHECK(table.n_samples() == 1);
}

TEST_CASE("drafts that are seldom found give and cost less") {
    Case two({{0.9}, {0.9}}, {10.0, 11.0, 30.0});
    CHECK(two.plan().depths == Depths{1, 0});
    for (PlanSlot& slot : two.slots) {
        slot.found = 0.5;
    }
    // Both at once are one row in the mean.
    CHECK(two.plan().depths == Depths{1, 1});
    CHECK(two.score({1, 1}) == doctest::Approx(1000.0 * (2.0 + 2 * 0.5 * 0.9) / (11.0 + 1.0)));
}

TEST_CASE("drafts that are seldom found cost what their rows do when they are") {
    Case one({{0.5, 0.5, 0.5, 0.5}}, {10.0, 20.0, 30.0, 40.0, 50.0});
    one.costs.draft = {};
    one.slots[0].found = 0.1;
    CHECK(one.plan().depths == Depths{0});
    CHECK(one.score({1}) == doctest::Approx(1000.0 * 1.05 / 11.0));
    CHECK(one.score({4}) == doctest::Approx(1000.0 * 1.09375 / 14.0));
    one.cycle_ms = {10.0};
    one.costs.cycle_ms = one.cycle_ms;
    CHECK(one.score({4}) == 0.0);
}
