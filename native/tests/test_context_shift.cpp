#include <doctest/doctest.h>

#include <limits>
#include <numeric>

#include "core/context_shift.h"
#include "fake_context.h"

using namespace paddock;
using paddock::testing::FakeContext;
using paddock::testing::FakeContextOptions;

namespace {

PromptRecord evaluated(FakeContext& context, std::int32_t count) {
    PromptRecord record;
    std::vector<BatchRow> rows;
    for (std::int32_t i = 0; i < count; ++i) {
        const Token token = 3 + i % 50;
        rows.push_back({.token = token, .position = i});
        record.tokens.push_back(token);
        if (rows.size() == 50 || i + 1 == count) {
            REQUIRE(context.decode(rows) == 0);
            rows.clear();
        }
    }
    return record;
}

}  // namespace

TEST_CASE("10 §9.2: half of what may go is discarded (vector 1)") {
    const ShiftPlan plan = plan_shift(99, 100, 10, 0, 50, true);
    CHECK(plan.keep == 11);
    CHECK(plan.discard == 44);
}

TEST_CASE("10 §9.2: a prompt that fills the context is not kept to its end (vector 2)") {
    const ShiftPlan plan = plan_shift(99, 100, -1, 0, 200, false);
    CHECK(plan.keep == 96);
    CHECK(plan.discard == 1);
}

TEST_CASE("10 §9.2: no more is discarded than there is") {
    CHECK(plan_shift(99, 100, 10, 1000, 50, false).discard == 89);
}

TEST_CASE("10 §9.2: the greatest number to keep is only a number") {
    CHECK(plan_shift(99, 100, std::numeric_limits<std::int32_t>::max(), 0, 50, true).keep == 96);
}

TEST_CASE("10 §9.2: a context of a few tokens can be shifted") {
    const ShiftPlan plan = plan_shift(1, 2, 5, 0, 1, true);
    CHECK(plan.keep == 0);
    CHECK(plan.discard == 1);
}

TEST_CASE("10 §9.3: memory and list lose the same tokens, and what follows moves up (vector 1)") {
    FakeContext context;
    PromptRecord record = evaluated(context, 99);
    const std::vector<Token> before = record.tokens;
    CHECK(apply_shift(context, 0, record, {.keep = 11, .discard = 44}));
    CHECK(context.journal().moves() == std::vector<std::string>{"remove 0 [11,55)", "shift 0 [55,99) -44"});
    CHECK(record.tokens.size() == 55);
    CHECK(record.tokens[10] == before[10]);
    CHECK(record.tokens[11] == before[55]);
    CHECK(context.tokens(0) == record.tokens);
    CHECK(context.position_max(0) == 54);
}

TEST_CASE("10 §9.4: checkpoints that reach the discarded part go") {
    FakeContext context;
    PromptRecord record = evaluated(context, 99);
    record.checkpoints = {{.pos_min = 0, .pos_max = 10, .n_tokens = 11, .state = {}},
                          {.pos_min = 0, .pos_max = 11, .n_tokens = 12, .state = {}}};
    CHECK(apply_shift(context, 0, record, {.keep = 11, .discard = 44}));
    REQUIRE(record.checkpoints.size() == 1);
    CHECK(record.checkpoints.front().pos_max == 10);
}

TEST_CASE("10 §14.7: memory that refuses is emptied, and the list is what to refill it from") {
    FakeContextOptions options;
    options.refuses_partial_removal = true;
    FakeContext context(options);
    PromptRecord record = evaluated(context, 99);
    CHECK_FALSE(apply_shift(context, 0, record, {.keep = 11, .discard = 44}));
    CHECK(context.position_max(0) == -1);
    CHECK(record.tokens.size() == 55);
}
