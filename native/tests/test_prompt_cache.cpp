#include <doctest/doctest.h>

#include <new>
#include <numeric>
#include <vector>

#include "core/prompt_cache.h"
#include "fake_context.h"

using namespace paddock;
using paddock::testing::FakeContext;
using paddock::testing::FakeContextOptions;

namespace {

constexpr std::int64_t no_limit = -1;
constexpr std::int64_t many_tokens = 1 << 20;

/// States of a fixed size, and memory that may run out.
class SizedContext : public FakeContext {
  public:
    using FakeContext::FakeContext;

    std::size_t n_state_bytes = 0;
    bool runs_out_of_memory = false;

    std::size_t state_size(SequenceId sequence, bool partial) override {
        return n_state_bytes > 0 ? n_state_bytes : FakeContext::state_size(sequence, partial);
    }
    std::vector<std::byte> read_state(SequenceId sequence, bool partial) override {
        if (runs_out_of_memory) {
            throw std::bad_alloc();
        }
        return n_state_bytes > 0 ? std::vector<std::byte>(n_state_bytes)
                                 : FakeContext::read_state(sequence, partial);
    }
};

/// `count` tokens from `first` on.
std::vector<Token> run_of(std::int32_t count, Token first) {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

/// Puts tokens into memory as those of a sequence.
PromptRecord evaluated(Context& context, SequenceId sequence, const std::vector<Token>& tokens) {
    context.remove(sequence, 0, end_position);
    std::vector<BatchRow> rows;
    for (const Token token : tokens) {
        rows.push_back({.token = token,
                        .position = static_cast<Position>(rows.size()),
                        .sequence = sequence,
                        .output = true});
    }
    REQUIRE(context.decode(rows) == 0);
    PromptRecord record;
    record.tokens = tokens;
    return record;
}

/// A record that only has a length: its tokens begin with `first`.
PromptRecord record_of(std::int32_t count, Token first) {
    PromptRecord record;
    record.tokens = run_of(count, first);
    return record;
}

constexpr std::size_t mib = 1024 * 1024;

}  // namespace

TEST_CASE("10 §10.3-10.4: a prompt that was saved comes back with its memory") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    const PromptRecord saved = evaluated(context, 0, run_of(20, 3));
    CHECK(cache.save(context, 0, saved) == SaveOutcome::saved);
    PromptRecord record = evaluated(context, 1, run_of(5, 40));
    CHECK(cache.load(context, 1, record, run_of(25, 3), {}));
    CHECK(record.tokens == saved.tokens);
    CHECK(context.tokens(1) == saved.tokens);
}

TEST_CASE("10 §10.4: an entry leaves the cache when it is loaded") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record;
    cache.load(context, 1, record, run_of(25, 3), {});
    CHECK(cache.entries() == 0);
    CHECK(cache.bytes() == 0);
}

TEST_CASE("10 §10.2: an entry counts tokens, checkpoints and state") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    PromptRecord record = evaluated(context, 0, run_of(20, 3));
    record.checkpoints.push_back(
        {.pos_min = 0, .pos_max = 3, .n_tokens = 4, .state = std::vector<std::byte>(500)});
    cache.save(context, 0, record);
    const std::size_t expected = bytes_of(record) + context.state_size(0, false);
    CHECK(cache.bytes() == static_cast<std::int64_t>(expected));
    CHECK(bytes_of(record) >= 20 * sizeof(Token) + 500);
}

TEST_CASE("10 §10.3: a prompt that an entry contains is not saved again") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    CHECK(cache.save(context, 0, evaluated(context, 0, run_of(10, 3))) == SaveOutcome::known);
    CHECK(cache.entries() == 1);
}

TEST_CASE("10 §10.3: entries that are beginnings of a new one go") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(10, 3)));
    cache.save(context, 0, evaluated(context, 0, run_of(10, 33)));
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    CHECK(cache.entries() == 2);
}

TEST_CASE("10 §10.6: the same tokens under other adapters are another entry") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    PromptRecord record = evaluated(context, 0, run_of(20, 3));
    cache.save(context, 0, record);
    record.lora_key = {{0, 1.0F}};
    CHECK(cache.save(context, 0, record) == SaveOutcome::saved);
    CHECK(cache.entries() == 2);
}

TEST_CASE("10 §10.6: an entry of other adapters is not loaded") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record;
    CHECK(cache.load(context, 1, record, run_of(20, 3), {{0, 1.0F}}));
    CHECK(record.tokens.empty());
    CHECK(cache.entries() == 1);
}

TEST_CASE("10 §10.6: what a slot holds under other adapters is worth nothing to the request") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record = evaluated(context, 1, run_of(21, 3));
    record.lora_key = {{0, 1.0F}};
    CHECK(cache.load(context, 1, record, run_of(21, 3), {}));
    CHECK(record.tokens == run_of(20, 3));
    CHECK(record.lora_key.empty());
}

TEST_CASE("10 §10.4: a slot whose own prompt suits as well keeps it") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record = evaluated(context, 1, run_of(20, 3));
    CHECK(cache.load(context, 1, record, run_of(25, 3), {}));
    CHECK(cache.entries() == 1);
}

TEST_CASE("10 §10.4: an entry of which less than a quarter is shared is no candidate") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(41, 3)));
    PromptRecord record;
    CHECK(cache.load(context, 1, record, run_of(10, 3), {}));
    CHECK(record.tokens.empty());
    cache.save(context, 0, evaluated(context, 0, run_of(40, 4)));
    CHECK(cache.load(context, 1, record, run_of(10, 4), {}));
    CHECK(record.tokens.size() == 40);
}

TEST_CASE("10 §10.4: of several entries the one that shares most is loaded") {
    FakeContext context;
    PromptCache cache(no_limit, many_tokens);
    std::vector<Token> half = run_of(10, 3);
    half.insert(half.end(), 10, 60);
    cache.save(context, 0, evaluated(context, 0, half));
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record;
    cache.load(context, 1, record, run_of(30, 3), {});
    CHECK(record.tokens == run_of(20, 3));
}

TEST_CASE("10 §10.4: a state that can't be restored leaves the cache, and the slot has to be cleared") {
    FakeContextOptions options;
    options.fails_to_write_state = true;
    FakeContext context(options);
    PromptCache cache(no_limit, many_tokens);
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    PromptRecord record;
    CHECK_FALSE(cache.load(context, 1, record, run_of(25, 3), {}));
    CHECK(cache.entries() == 0);
    CHECK(cache.bytes() == 0);
}

TEST_CASE("10 §10.3: a prompt larger than the limit is not saved") {
    SizedContext context;
    context.n_state_bytes = 2 * mib;
    PromptCache cache(1, many_tokens);
    CHECK(cache.save(context, 0, record_of(10, 3)) == SaveOutcome::too_large);
    CHECK(cache.entries() == 0);
}

TEST_CASE("10 §10.3: the oldest entries make room") {
    SizedContext context;
    context.n_state_bytes = mib - 1000;
    PromptCache cache(2, many_tokens);
    cache.save(context, 0, record_of(10, 3));
    cache.save(context, 0, record_of(10, 23));
    cache.save(context, 0, record_of(10, 43));
    CHECK(cache.entries() == 2);
    CHECK(cache.bytes() <= static_cast<std::int64_t>(2 * mib));
    CHECK(cache.save(context, 0, record_of(10, 43)) == SaveOutcome::known);
    CHECK(cache.save(context, 0, record_of(10, 3)) == SaveOutcome::saved);
}

TEST_CASE("10 §10.3: when memory runs out the cache shrinks to two fifths and stays small") {
    SizedContext context;
    context.n_state_bytes = 1000;
    PromptCache cache(no_limit, many_tokens);
    for (Token first = 100; first < 1100; first += 100) {
        cache.save(context, 0, record_of(10, first));
    }
    const std::int64_t before = cache.bytes();
    context.runs_out_of_memory = true;
    CHECK(cache.save(context, 0, record_of(10, 3)) == SaveOutcome::failed);
    CHECK(cache.entries() == 4);
    CHECK(cache.bytes() * 10 <= before * 4);
    context.runs_out_of_memory = false;
    cache.save(context, 0, record_of(10, 3));
    CHECK(cache.bytes() * 10 <= before * 4);
}

TEST_CASE("10 §10.3: a state that isn't as long as announced is not kept") {
    FakeContextOptions options;
    options.fails_to_read_state = true;
    FakeContext context(options);
    PromptCache cache(no_limit, many_tokens);
    CHECK(cache.save(context, 0, record_of(10, 3)) == SaveOutcome::failed);
    CHECK(cache.entries() == 0);
    CHECK(cache.bytes() == 0);
}

TEST_CASE("10 §10.5: without a limit in bytes the tokens of the context are the limit") {
    SizedContext context;
    context.n_state_bytes = 1000;
    PromptCache cache(no_limit, 25);
    cache.save(context, 0, record_of(10, 3));
    cache.save(context, 0, record_of(10, 23));
    cache.save(context, 0, record_of(10, 43));
    CHECK(cache.entries() == 3);
    cache.enforce_limits();
    CHECK(cache.entries() == 2);
}

TEST_CASE("10 §10.5: with a limit in bytes as many tokens as fit may stay") {
    SizedContext context;
    context.n_state_bytes = 1000;
    PromptCache cache(1, 25);
    for (Token first = 100; first < 1100; first += 100) {
        cache.save(context, 0, record_of(10, first));
    }
    cache.enforce_limits();
    CHECK(cache.entries() == 10);
}

TEST_CASE("10 §10.1: a limit of 0 turns the cache off") {
    FakeContext context;
    PromptCache cache(0, many_tokens);
    CHECK_FALSE(cache.enabled());
    cache.save(context, 0, evaluated(context, 0, run_of(20, 3)));
    CHECK(cache.entries() == 0);
}

TEST_CASE("10 §10.1: the greatest limit is no limit") {
    CHECK(PromptCache(std::numeric_limits<std::int64_t>::max(), 1).enabled());
}
