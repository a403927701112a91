// What cycles cost by rows and drafts (11 §17.2-17.4, §22 vectors 21-23).
#include <doctest/doctest.h>

#include <limits>
#include <utility>

#include "core/speculation/cost_model.h"

using namespace paddock;

namespace {

CostModel measured(std::int32_t rows, double ms) {
    CostModel model(0.2, 3);
    for (int i = 0; i < 3; ++i) {
        model.add_cycle(rows, ms, 0);
    }
    return model;
}

}  // namespace

TEST_CASE("rows fall into buckets that widen") {
    const std::pair<int, std::size_t> expected[] = {{1, 1},   {8, 8},    {9, 9},    {12, 9},
                                                    {13, 10}, {32, 14},  {33, 15},  {48, 15},
                                                    {49, 16}, {128, 20}, {129, 21}, {100000, 21}};
    for (const auto& [rows, bucket] : expected) {
        CHECK(CostModel::bucket_of(rows) == bucket);
    }
}

TEST_CASE("the mean of a bucket follows its samples") {
    CostModel model(0.2, 3);
    for (const double ms : {10.0, 12.0, 8.0}) {
        model.add_cycle(5, ms, 0);
    }
    CHECK(*model.cycle_ms(5, 0) == doctest::Approx(9.92));
}

TEST_CASE("a regression stands in for means with too few samples") {
    CostModel model(0.2, 3);
    model.add_cycle(1, 10.0, 0);
    model.add_cycle(4, 13.0, 0);
    CHECK(*model.cycle_ms(2, 0) == doctest::Approx(11.0));
}

TEST_CASE("rows that hardly differ give no regression") {
    CostModel model(0.2, 3);
    model.add_cycle(15, 10.0, 0);
    model.add_cycle(16, 13.0, 0);
    CHECK_FALSE(model.cycle_ms(2, 0).has_value());
}

TEST_CASE("the costs end before the first unknown number of rows") {
    CHECK(measured(2, 10.0).cycle_ms(2, 5, 0).size() == 1);
}

TEST_CASE("a line joins the means on both sides") {
    CostModel model = measured(2, 10.0);
    for (int i = 0; i < 3; ++i) {
        model.add_cycle(6, 18.0, 0);
    }
    CHECK(*model.cycle_ms(4, 0) == doctest::Approx(14.0));
}

TEST_CASE("all rows of a bucket cost what its mean says, as backends take them by the block") {
    CostModel model = measured(8, 33.0);
    for (int i = 0; i < 3; ++i) {
        model.add_cycle(11, 56.0, 0);
    }
    CHECK(*model.cycle_ms(9, 0) == doctest::Approx(56.0));
    CHECK(*model.cycle_ms(12, 0) == doctest::Approx(56.0));
}

TEST_CASE("rows of a bucket wider than a block cost more the more they are") {
    CostModel model = measured(4, 30.0);
    const auto add = [&](std::int32_t rows) {
        for (int i = 0; i < 3; ++i) {
            model.add_cycle(rows, 10.0 + 5.0 * rows, 0);
        }
    };
    add(36);
    CHECK(*model.cycle_ms(46, 0) == doctest::Approx(240.0));
    add(130);
    CHECK(*model.cycle_ms(100, 0) == doctest::Approx(510.0));
    CHECK(*model.cycle_ms(190, 0) == doctest::Approx(960.0));
}

TEST_CASE("a sample far above the mean is cut") {
    CostModel model = measured(1, 10.0);
    model.add_cycle(1, 10.0, 0);
    model.add_cycle(1, 1e6, 0);
    CHECK(*model.cycle_ms(1, 0) == doctest::Approx(11.0));
}

TEST_CASE("a mean from much shorter texts is stale, and the next sample replaces it") {
    CostModel model = measured(1, 10.0);
    CHECK(model.is_stale(1, 5000));
    model.add_cycle(1, 20.0, 5000);
    CHECK_FALSE(model.is_stale(1, 5000));
    CHECK(*model.cycle_ms(1, 5000) == doctest::Approx(20.0));
}

TEST_CASE("times that are no numbers are left out") {
    CostModel model(0.2, 1);
    model.add_cycle(1, std::numeric_limits<double>::quiet_NaN(), 0);
    model.add_cycle(1, -1.0, 0);
    CHECK_FALSE(model.cycle_ms(1, 0).has_value());
}

TEST_CASE("an unknown class of drafting slots costs what the nearest known one does") {
    CostModel model(0.2, 3);
    model.add_draft({DraftType::draft_simple, 2, 3, 6.0});
    CHECK(model.draft_cost(DraftType::draft_simple).of(8, 4) == doctest::Approx(8.0));
    CHECK(model.draft_cost(DraftType::ngram_mod).of(1, 4) == 0.0);
}

TEST_CASE("the cost of an n-gram draft does not grow with its length") {
    CostModel model(0.2, 3);
    model.add_draft({DraftType::ngram_mod, 1, 48, 0.5});
    CHECK(model.draft_cost(DraftType::ngram_mod).of(1, 64) == doctest::Approx(0.5));
}

TEST_CASE("prompts tell how little each of many rows costs") {
    CostModel model(0.2, 1);
    for (const std::int32_t rows : {1, 2, 3}) {
        model.add_cycle(rows, 10.0 * rows, 0);
    }
    CHECK(*model.cycle_ms(13, 0) == doctest::Approx(130.0));
    model.add_prompt(8, 400.0);  // too few
    CHECK(*model.cycle_ms(13, 0) == doctest::Approx(130.0));
    model.add_prompt(400, 800.0);
    CHECK(*model.cycle_ms(13, 0) == doctest::Approx(60.0));
    CHECK(*model.cycle_ms(2, 0) == doctest::Approx(20.0));
}

TEST_CASE("fewer rows never cost more than more of them") {
    CostModel model(0.2, 1);
    model.add_cycle(1, 10.0, 0);
    model.add_cycle(6, 900.0, 0);  // something else ran
    model.add_cycle(16, 80.0, 0);
    CHECK(*model.cycle_ms(6, 0) == doctest::Approx(80.0));
}
