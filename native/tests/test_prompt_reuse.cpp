#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "core/prompt_reuse.h"
#include "fake_context.h"

using namespace paddock;
using paddock::testing::FakeContext;
using paddock::testing::FakeContextOptions;

namespace {

std::vector<Token> run_of(std::int32_t count, Token first = 3) {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

FakeContextOptions roomy() {
    FakeContextOptions options;
    options.facts.n_ctx = 4096;
    options.facts.n_ctx_slot = 4096;
    options.facts.n_batch = 4096;
    options.n_vocab = 5000;
    return options;
}

/// Memory and list of sequence 0.
PromptRecord evaluated(FakeContext& context, const std::vector<Token>& tokens) {
    PromptRecord record;
    std::vector<BatchRow> rows;
    for (const Token token : tokens) {
        rows.push_back({.token = token, .position = static_cast<Position>(rows.size())});
    }
    REQUIRE(context.decode(rows) == 0);
    record.tokens = tokens;
    return record;
}

Checkpoint checkpoint_of(FakeContext& context, std::int32_t n_tokens) {
    return {.pos_min = context.position_min(0),
            .pos_max = context.position_max(0),
            .n_tokens = n_tokens,
            .state = context.read_state(0, true)};
}

FakeContextOptions recurrent() {
    FakeContextOptions options = roomy();
    options.facts.is_recurrent = true;
    options.facts.removal = Removal::full;
    return options;
}

/// Evaluates 2100 tokens with checkpoints after 1484 and 1996 of them.
PromptRecord with_checkpoints(FakeContext& context) {
    PromptRecord record;
    const std::vector<Token> tokens = run_of(2100);
    std::vector<BatchRow> rows;
    for (const Token token : tokens) {
        if (record.tokens.size() == 1484 || record.tokens.size() == 1996) {
            REQUIRE(context.decode(rows) == 0);
            rows.clear();
            record.checkpoints.push_back(
                checkpoint_of(context, static_cast<std::int32_t>(record.tokens.size())));
        }
        rows.push_back({.token = token, .position = static_cast<Position>(record.tokens.size())});
        record.tokens.push_back(token);
    }
    REQUIRE(context.decode(rows) == 0);
    return record;
}

constexpr Token a = 10, b = 11, c = 12, d = 13, e = 14, f = 15, g = 16;

}  // namespace

TEST_CASE("10 §8.4: a run that stands further on moves to where the prompt has it (vector 7)") {
    FakeContext context(roomy());
    PromptRecord record = evaluated(context, {a, b, c, d, e, f});
    CHECK(reuse_chunks(context, 0, record, std::vector<Token>{a, b, e, f, g}, 2, 2) == 4);
    CHECK(context.journal().moves() == std::vector<std::string>{"remove 0 [2,4)", "shift 0 [4,6) -2"});
    record.tokens.resize(4);
    CHECK(record.tokens == std::vector<Token>{a, b, e, f});
    CHECK(context.tokens(0) == record.tokens);
}

TEST_CASE("10 §8.4: a run shorter than asked for stays (vector 7)") {
    FakeContext context(roomy());
    PromptRecord record = evaluated(context, {a, b, c, d, e, f});
    CHECK(reuse_chunks(context, 0, record, std::vector<Token>{a, b, e, f, g}, 2, 3) == 2);
    CHECK(context.journal().moves().empty());
}

TEST_CASE("10 §8.4: several runs move one after the other, and memory ends as the prompt begins") {
    FakeContext context(roomy());
    PromptRecord record = evaluated(context, {a, g, b, c, g, g, d, e, f});
    const std::vector<Token> prompt{a, b, c, d, e, f};
    CHECK(reuse_chunks(context, 0, record, prompt, 1, 2) == 6);
    CHECK(context.remove(0, 6, end_position));
    CHECK(context.tokens(0) == prompt);
    CHECK(context.position_max(0) == 5);
}

TEST_CASE("10 §8.4: checkpoints of moved positions go") {
    FakeContext context(roomy());
    PromptRecord record = evaluated(context, {a, b, c, d, e, f});
    record.checkpoints = {{.pos_min = 0, .pos_max = 1, .n_tokens = 2, .state = {}},
                          {.pos_min = 0, .pos_max = 2, .n_tokens = 3, .state = {}}};
    reuse_chunks(context, 0, record, std::vector<Token>{a, b, e, f, g}, 2, 2);
    REQUIRE(record.checkpoints.size() == 1);
    CHECK(record.checkpoints.front().pos_max == 1);
}

TEST_CASE("10 §8.4: memory that refuses keeps what was reused until then") {
    FakeContextOptions options = roomy();
    options.refuses_partial_removal = true;
    FakeContext context(options);
    PromptRecord record = evaluated(context, {a, b, c, d, e, f});
    CHECK(reuse_chunks(context, 0, record, std::vector<Token>{a, b, e, f, g}, 2, 2) == 2);
    CHECK(record.tokens == std::vector<Token>{a, b, c, d, e, f});
}

TEST_CASE("10 §8.4: repetitive text is searched in time that grows with its length") {
    FakeContext context;
    constexpr std::int32_t count = 200'000;
    PromptRecord record;
    record.tokens.assign(count, a);
    std::vector<Token> prompt(count, a);
    prompt[count / 2] = b;
    prompt[0] = c;
    CHECK(reuse_chunks(context, 0, record, prompt, 0, count / 2) == 0);
}

TEST_CASE("10 §8.5: one token of a prompt that is all there is evaluated again") {
    FakeContext context(roomy());
    PromptRecord record = evaluated(context, {a, b, c});
    const HistoryOutcome outcome = check_history(context, 0, record, 3, 3);
    CHECK(outcome.n_past == 2);
    CHECK(outcome.warning.empty());
}

TEST_CASE("10 §8.6: the newest checkpoint before the shared part is restored (vector 5)") {
    FakeContext context(recurrent());
    PromptRecord record = with_checkpoints(context);
    const HistoryOutcome outcome = check_history(context, 0, record, 1990, 2200);
    CHECK(outcome.restored_checkpoint);
    CHECK(outcome.n_past == 1484);
    CHECK(context.position_max(0) == 1483);
    // The memory now goes on as if it had never seen the rest.
    CHECK(context.remove(0, 1484, end_position));
}

TEST_CASE("10 §8.7: checkpoints behind the restored one are erased (vector 5)") {
    FakeContext context(recurrent());
    PromptRecord record = with_checkpoints(context);
    check_history(context, 0, record, 1990, 2200);
    REQUIRE(record.checkpoints.size() == 1);
    CHECK(record.checkpoints.front().pos_max == 1483);
}

TEST_CASE("10 §8.6: a running state that holds the first differing token is no match") {
    FakeContext context(recurrent());
    PromptRecord record = with_checkpoints(context);
    // Shared are 0 to 1994; the newer checkpoint stands for 0 to 1995.
    CHECK(check_history(context, 0, record, 1995, 2200).n_past == 1484);
}

TEST_CASE("10 §8.6: without a checkpoint a running state starts over") {
    FakeContext context(recurrent());
    PromptRecord record = evaluated(context, run_of(100));
    const HistoryOutcome outcome = check_history(context, 0, record, 50, 80);
    CHECK(outcome.n_past == 0);
    CHECK_FALSE(outcome.restored_checkpoint);
    CHECK(outcome.warning.find("full re-processing") != std::string::npos);
}

TEST_CASE("10 §8.6: a checkpoint that can't be written back leads to a start over") {
    FakeContextOptions options = recurrent();
    options.fails_to_write_state = true;
    FakeContext context(options);
    PromptRecord record = with_checkpoints(context);
    const HistoryOutcome outcome = check_history(context, 0, record, 1990, 2200);
    CHECK(outcome.n_past == 0);
    CHECK_FALSE(outcome.warning.empty());
    CHECK(record.checkpoints.empty());
}

TEST_CASE("10 §8.6: a sliding window that still reaches back far enough needs no checkpoint") {
    FakeContextOptions options = roomy();
    options.facts.n_swa = 32;
    FakeContext context(options);
    PromptRecord record = evaluated(context, run_of(20));
    CHECK(check_history(context, 0, record, 10, 30).n_past == 10);
}

TEST_CASE("10 §8.6: a sliding window that has moved on takes a checkpoint with enough history") {
    FakeContextOptions options = roomy();
    options.facts.n_swa = 32;
    FakeContext context(options);
    PromptRecord record = with_checkpoints(context);
    const HistoryOutcome outcome = check_history(context, 0, record, 1990, 2200);
    CHECK(outcome.restored_checkpoint);
    // One position less than it holds: the spec counts a window's checkpoint by its last position.
    CHECK(outcome.n_past == 1483);
    CHECK(context.position_min(0) == 1484 - 32);
}

TEST_CASE("10 §8.6: empty memory that should hold tokens is cleared with a warning") {
    FakeContext context(roomy());
    PromptRecord record;
    record.tokens = {a, b, c, d};
    record.checkpoints = {{.pos_min = 0, .pos_max = 1, .n_tokens = 2, .state = {}}};
    const HistoryOutcome outcome = check_history(context, 0, record, 2, 4);
    CHECK(outcome.n_past == 0);
    CHECK(record.tokens.empty());
    CHECK(record.checkpoints.empty());
    CHECK_FALSE(outcome.warning.empty());
}

TEST_CASE("10 §8.6: a prompt that only adds to what is there asks nothing of memory") {
    FakeContext context(recurrent());
    PromptRecord record = evaluated(context, {a, b, c});
    const HistoryOutcome outcome = check_history(context, 0, record, 3, 5);
    CHECK(outcome.n_past == 3);
    CHECK(outcome.warning.empty());
}

TEST_CASE("10 §8.7: nothing shared leaves no checkpoint") {
    FakeContext context(recurrent());
    PromptRecord record = with_checkpoints(context);
    CHECK(check_history(context, 0, record, 0, 100).n_past == 0);
    CHECK(record.checkpoints.empty());
}
