#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <vector>

#include "core/speculation/loop_guard.h"

using namespace paddock;

namespace {

constexpr auto visible = TextRegion::visible;
constexpr auto reasoning = TextRegion::reasoning;

/// Window 12, periods up to 4, coverage of 6 (vectors 32 and 33 differ).
std::optional<Loop> loop_in(const std::vector<Token>& tokens, std::int32_t window = 12,
                            std::int32_t max_period = 4, std::int32_t coverage = 6) {
    RepetitionHistory history(window, max_period, coverage);
    for (const Token token : tokens) {
        history.push(token);
    }
    return history.find();
}

LoopGuardParams small(const std::string& mode) {
    return {.mode = mode,
            .min_reasoning_tokens = 8,
            .window_tokens = 12,
            .max_period = 4,
            .min_repeated_coverage = 6,
            .check_interval = 1};
}

/// Index of the first token with which a loop is found; -1: none is.
std::int32_t first_hit(LoopGuard& guard, const std::vector<Token>& tokens, TextRegion region) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (guard.take(tokens[i], region).has_value()) {
            return static_cast<std::int32_t>(i);
        }
    }
    return -1;
}

std::vector<Token> repeated(std::int32_t n, Token token = 7) {
    return std::vector<Token>(static_cast<std::size_t>(n), token);
}

std::vector<Token> counting(std::int32_t n) {
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n; ++i) {
        tokens.push_back(i);
    }
    return tokens;
}

/// What 11 §19.6 and §19.7 say, word for word, without memory of earlier tokens.
std::optional<Loop> loop_by_the_book(const std::vector<Token>& tokens, std::int32_t max_period,
                                     std::int32_t min_coverage) {
    const auto length = static_cast<std::int32_t>(tokens.size());
    const auto same = [&](std::int32_t j, std::int32_t p) {
        return tokens[static_cast<std::size_t>(length - 1 - j)] ==
               tokens[static_cast<std::size_t>(length - 1 - j - p)];
    };
    const std::int32_t last = std::min(max_period, length / 3);
    for (std::int32_t p = 1; p <= last; ++p) {
        std::int32_t m = 0;
        while (m + p < length && same(m, p)) {
            ++m;
        }
        if (m > 0 && m + p >= min_coverage && m + p >= 3 * p) {
            return Loop{true, p, m + p, static_cast<double>(m + p) / length};
        }
    }
    std::optional<Loop> best;
    for (std::int32_t p = 1; p <= last; ++p) {
        const std::int32_t k = length - p;
        std::int32_t n_same = 0;
        for (std::int32_t j = 0; j < k; ++j) {
            n_same += same(j, p) ? 1 : 0;
        }
        const double share = static_cast<double>(n_same) / k;
        if (k >= min_coverage && share >= 0.95 && (!best.has_value() || share > best->score)) {
            best = Loop{false, p, k, share};
        }
    }
    return best;
}

}  // namespace

TEST_CASE("11 §19.6, vector 32: a period is found with its coverage") {
    const auto loop = loop_in({9, 9, 1, 2, 3, 1, 2, 3, 1, 2, 3});
    REQUIRE(loop.has_value());
    CHECK(loop->kind() == "exact");
    CHECK(loop->period == 3);
    CHECK(loop->coverage == 9);
    CHECK(loop->score == doctest::Approx(9.0 / 11.0));
}

TEST_CASE("11 §19.6, vector 32: two periods are too few") { CHECK_FALSE(loop_in({1, 2, 3, 1, 2, 3})); }

TEST_CASE("11 §19.6, vector 32: one token again and again has the shortest period") {
    const auto loop = loop_in(repeated(6));
    REQUIRE(loop.has_value());
    CHECK(loop->period == 1);
    CHECK(loop->coverage == 6);
}

TEST_CASE("11 §19.6, vector 32: what comes before the repetition doesn't matter") {
    const auto loop = loop_in({5, 1, 2, 1, 2, 1, 2});
    REQUIRE(loop.has_value());
    CHECK(loop->period == 2);
    CHECK(loop->coverage == 6);
}

TEST_CASE("11 §19.7, vector 33: an odd token in many makes a loop that is near") {
    std::vector<Token> tokens;
    for (Token i = 0; i < 48; ++i) {
        tokens.push_back(i == 24 ? 99 : i % 4);
    }
    const auto loop = loop_in(tokens, 48, 16, 24);
    REQUIRE(loop.has_value());
    CHECK(loop->kind() == "near");
    CHECK(loop->period == 4);
    CHECK(loop->coverage == 44);
    CHECK(loop->score == doctest::Approx(42.0 / 44.0));
}

TEST_CASE("11 §19.7: less than 95 percent is no loop") {
    std::vector<Token> tokens;
    for (Token i = 0; i < 48; ++i) {
        tokens.push_back(i == 14 || i == 24 ? 99 : i % 4);
    }
    CHECK_FALSE(loop_in(tokens, 48, 16, 24));
}

TEST_CASE("11 §19.6: a history that the window cut off gives what its tokens alone give") {
    std::mt19937 random(7);
    for (std::int32_t round = 0; round < 60; ++round) {
        const auto draw = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
        const std::int32_t window = 9 + draw(40);
        const std::int32_t max_period = 1 + draw(static_cast<std::uint32_t>(window / 3));
        const std::int32_t coverage = 1 + draw(static_cast<std::uint32_t>(window));
        const std::int32_t period = 1 + draw(6);
        RepetitionHistory history(window, max_period, coverage);
        std::vector<Token> tokens;
        for (std::int32_t i = 0; i < 3 * window; ++i) {
            const Token token = draw(20) == 0 ? draw(50) : i % period;
            history.push(token);
            tokens.push_back(token);
            if (tokens.size() > static_cast<std::size_t>(window)) {
                tokens.erase(tokens.begin());
            }
            const auto found = history.find();
            const auto expected = loop_by_the_book(tokens, max_period, coverage);
            REQUIRE(found.has_value() == expected.has_value());
            if (found.has_value()) {
                CHECK(found->is_exact == expected->is_exact);
                CHECK(found->period == expected->period);
                CHECK(found->coverage == expected->coverage);
                CHECK(found->score == doctest::Approx(expected->score));
            }
        }
    }
}

TEST_CASE("11 §19.4: tokens are counted by region in every mode") {
    LoopGuard guard;
    guard.take(1, reasoning);
    guard.take(2, reasoning);
    guard.take(3, TextRegion::none);
    guard.take(4, visible);
    CHECK(guard.report().mode == "off");
    CHECK(guard.report().reasoning_tokens == 2);
    CHECK(guard.report().visible_tokens == 1);
}

TEST_CASE("11 §19.3: a guard that is off finds nothing") {
    LoopGuard guard;
    CHECK(first_hit(guard, repeated(4000), visible) == -1);
}

TEST_CASE("11 §19.5: nothing is looked at before the least number of tokens") {
    LoopGuard guard(small("stop"));
    CHECK(first_hit(guard, repeated(20), visible) == 7);
}

TEST_CASE("11 §19.5: a look is taken at intervals only") {
    LoopGuardParams params = small("stop");
    params.check_interval = 5;
    LoopGuard guard(params);
    CHECK(first_hit(guard, repeated(20), visible) == 7);
    CHECK(first_hit(guard, repeated(20), visible) == 4);
}

TEST_CASE("11 §19.5: each region has a history of its own") {
    LoopGuard guard(small("stop"));
    CHECK(first_hit(guard, repeated(7), reasoning) == -1);
    CHECK(first_hit(guard, repeated(7), visible) == -1);
}

TEST_CASE("11 §19.5: a new block of reasoning starts anew") {
    LoopGuard guard(small("stop"));
    CHECK(first_hit(guard, repeated(7), reasoning) == -1);
    guard.take(1, visible);
    CHECK(first_hit(guard, repeated(5), reasoning) == -1);
    CHECK(guard.take(7, reasoning).has_value());
}

TEST_CASE("11 §19.5: visible text goes on behind reasoning") {
    LoopGuard guard(small("stop"));
    CHECK(first_hit(guard, repeated(7), visible) == -1);
    guard.take(1, reasoning);
    CHECK(guard.take(7, visible).has_value());
}

TEST_CASE("11 §19.6: text that doesn't repeat never makes a loop") {
    LoopGuard guard(small("stop"));
    CHECK(first_hit(guard, counting(2000), visible) == -1);
}

TEST_CASE("11 §19.8: only reasoning is closed, and only in the mode that says so") {
    CHECK(LoopGuard(small("force-close")).may_close(reasoning, -1, 5));
    CHECK_FALSE(LoopGuard(small("force-close")).may_close(visible, -1, 5));
    CHECK_FALSE(LoopGuard(small("stop")).may_close(reasoning, -1, 5));
}

TEST_CASE("11 §19.8, vector 34: an end that doesn't fit into the budget is not begun") {
    const LoopGuard guard(small("force-close"));
    CHECK_FALSE(guard.may_close(reasoning, 100 - 97, 5));
    CHECK(guard.may_close(reasoning, 5, 5));
    CHECK(guard.may_close(reasoning, -1, 5));
}

TEST_CASE("11 §19.8: interventions are limited") {
    LoopGuard guard(small("force-close"));
    guard.act({}, LoopAction::force_close);
    CHECK_FALSE(guard.may_close(reasoning, -1, 5));
}

TEST_CASE("11 §19.8: after a close the history of the reasoning is empty") {
    LoopGuard guard(small("force-close"));
    REQUIRE(first_hit(guard, repeated(8), reasoning) == 7);
    guard.act({}, LoopAction::force_close);
    CHECK(first_hit(guard, repeated(5), reasoning) == -1);
    CHECK(guard.take(7, reasoning).has_value());
}

TEST_CASE("11 §19.8: the report holds the latest action") {
    LoopGuard guard(small("force-close"));
    guard.act({.is_exact = true}, LoopAction::force_close);
    guard.act({.is_exact = false}, LoopAction::stop);
    CHECK(guard.report().triggered);
    CHECK(guard.report().action == "stop");
    CHECK(guard.report().reason == "near");
    CHECK(guard.report().interventions == 1);
}
