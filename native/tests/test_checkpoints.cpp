#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/checkpoints.h"
#include "fake_context.h"

using namespace paddock;
using paddock::testing::FakeContext;
using paddock::testing::FakeContextOptions;

namespace {

ContextFacts facts_of(bool is_hybrid) {
    ContextFacts facts;
    facts.n_ctx = facts.n_ctx_slot = facts.n_ctx_train = 32768;
    facts.n_batch = 2048;
    facts.n_ubatch = 512;
    facts.is_hybrid = is_hybrid;
    facts.n_swa = is_hybrid ? 0 : 1024;
    return facts;
}

struct Course {
    /// Rows of each visit, and the `n_tokens` of each checkpoint.
    std::vector<std::int32_t> visits;
    std::vector<std::int32_t> checkpoints;
};

/// Evaluates a prompt alone in its batches, as the scheduler does.
Course course_of(std::int32_t n_prompt, const ContextFacts& facts, std::int32_t min_step) {
    FakeContextOptions options;
    options.facts = facts;
    FakeContext context(options);
    PromptRecord record;
    Course course;
    while (static_cast<std::int32_t>(record.tokens.size()) < n_prompt) {
        const auto n_before = static_cast<std::int32_t>(record.tokens.size());
        std::vector<BatchRow> rows;
        for (std::int32_t next = n_before; next < n_prompt && std::ssize(rows) < facts.n_batch; ++next) {
            rows.push_back({.token = 3 + next % 50, .position = next});
            if (is_cut(n_prompt - next - 1, facts)) {
                break;
            }
        }
        const auto n_rows = static_cast<std::int32_t>(rows.size());
        const CheckpointInputs inputs{.facts = facts,
                                      .n_list = n_before + n_rows,
                                      .n_rows = n_rows,
                                      .n_prompt = n_prompt,
                                      .min_step = min_step,
                                      .pos_min = context.position_min(0)};
        if (wants_checkpoint(inputs, record)) {
            add_checkpoint(context, 0, record, 32);
            course.checkpoints.push_back(record.checkpoints.back().n_tokens);
        }
        REQUIRE(context.decode(rows) == 0);
        std::ranges::transform(rows, std::back_inserter(record.tokens), &BatchRow::token);
        course.visits.push_back(n_rows);
    }
    return course;
}

}  // namespace

TEST_CASE("10 §11.2: memory that can be cut freely takes no checkpoints") {
    CHECK_FALSE(uses_checkpoints({}, 32));
}

TEST_CASE("10 §11.2: memory that is hard to cut takes them") {
    CHECK(uses_checkpoints({.n_swa = 128}, 32));
    CHECK(uses_checkpoints({.is_recurrent = true}, 32));
    CHECK(uses_checkpoints({.is_hybrid = true}, 32));
    CHECK(uses_checkpoints({.removal = Removal::full}, 32));
    CHECK(uses_checkpoints({.removal = Removal::recurrent}, 32));
}

TEST_CASE("10 §11.2: a limit of 0 turns checkpoints off") {
    CHECK_FALSE(uses_checkpoints({.is_recurrent = true}, 0));
}

TEST_CASE("10 §11.3: a small batch cuts where it is full") {
    const ContextFacts facts{.n_batch = 64, .n_ubatch = 512};
    CHECK(is_cut(64, facts));
    CHECK(is_cut(4, facts));
    CHECK_FALSE(is_cut(516, facts));
}

TEST_CASE("10 §11.3-11.6: a prompt is cut near its end, and the state before each cut is kept (vector 3)") {
    const Course course = course_of(2000, facts_of(true), -1);
    CHECK(course.visits == std::vector<std::int32_t>{1484, 512, 4});
    CHECK(course.checkpoints == std::vector<std::int32_t>{1484, 1996});
}

TEST_CASE("10 §11.5: a hybrid model keeps the state of a short prompt, too (vector 4)") {
    const Course course = course_of(40, facts_of(true), -1);
    CHECK(course.visits == std::vector<std::int32_t>{36, 4});
    CHECK(course.checkpoints == std::vector<std::int32_t>{36});
}

TEST_CASE("10 §11.5: a window model needs a prompt of 64 tokens (vector 4)") {
    CHECK(course_of(63, facts_of(false), -1).checkpoints.empty());
    CHECK(course_of(64, facts_of(false), -1).checkpoints == std::vector<std::int32_t>{60});
}

TEST_CASE("10 §11.4: inside a long prompt checkpoints keep their distance (vector 6)") {
    const Course course = course_of(20000, facts_of(true), 4096);
    CHECK(course.visits ==
          std::vector<std::int32_t>{2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 1052, 512, 4});
    CHECK(course.checkpoints == std::vector<std::int32_t>{4096, 8192, 12288, 16384, 19484, 19996});
}

TEST_CASE("10 §11.5: checkpoints are more than 64 tokens apart") {
    const ContextFacts facts = facts_of(true);
    PromptRecord record;
    record.checkpoints.push_back({.pos_min = 99, .pos_max = 99, .n_tokens = 100, .state = {}});
    CheckpointInputs inputs{.facts = facts, .n_list = 168, .n_rows = 4, .n_prompt = 168, .pos_min = 163};
    CHECK_FALSE(wants_checkpoint(inputs, record));
    inputs.n_list = 169;
    CHECK(wants_checkpoint(inputs, record));
}

TEST_CASE("10 §11.6: the oldest make room for a new one") {
    FakeContext context;
    REQUIRE(context.decode(std::vector<BatchRow>{{.token = 3}}) == 0);
    PromptRecord record;
    record.tokens = {3};
    record.checkpoints.resize(3);
    const CheckpointCounts counts = add_checkpoint(context, 0, record, 2);
    CHECK(counts.created == 1);
    CHECK(counts.evicted == 2);
    REQUIRE(record.checkpoints.size() == 2);
    CHECK(record.checkpoints.back().n_tokens == 1);
}

TEST_CASE("10 §11.6: a state that can't be read changes nothing") {
    FakeContextOptions options;
    options.fails_to_read_state = true;
    FakeContext context(options);
    PromptRecord record;
    record.checkpoints.resize(2);
    const CheckpointCounts counts = add_checkpoint(context, 0, record, 2);
    CHECK(counts.created == 0);
    CHECK(counts.evicted == 0);
    CHECK(record.checkpoints.size() == 2);
}
