#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "core/slot_choice.h"

using namespace paddock;

namespace {

/// Tokens first, first + 1, ...
std::vector<Token> run_of(std::int32_t count, Token first = 0) {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

/// `n_common` tokens of the request, then others.
std::vector<Token> sharing(std::int32_t n_common, std::int32_t count) {
    std::vector<Token> tokens = run_of(n_common);
    const std::vector<Token> rest = run_of(count - n_common, 10000);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
}

SlotCandidate idle_slot(std::int32_t id, std::span<const Token> cached, Micros last_used = 1) {
    return {.id = id, .idle = true, .cached = cached, .last_used = last_used};
}

}  // namespace

TEST_CASE("10 §6.2-6.3: a slot that shares most of the request is chosen and keeps its prompt (vector 14)") {
    const auto cached = sharing(90, 100);
    const std::vector slots{idle_slot(0, cached)};
    const SlotChoice choice = choose_slot(slots, run_of(120), 0.1F, -1);
    CHECK(choice.id == 0);
    CHECK(choice.similarity == doctest::Approx(0.75));
    CHECK(choice.f_keep == doctest::Approx(0.90));
    CHECK_FALSE(choice.exchange);
    CHECK(choice.by_similarity);
}

TEST_CASE("10 §6.3: a slot that would lose most of its prompt saves it first (vector 14)") {
    const auto cached = sharing(30, 100);
    const std::vector slots{idle_slot(0, cached)};
    const SlotChoice choice = choose_slot(slots, run_of(120), 0.1F, -1);
    CHECK(choice.similarity == doctest::Approx(0.25));
    CHECK(choice.f_keep == doctest::Approx(0.30));
    CHECK(choice.exchange);
}

TEST_CASE("10 §6.2: the similarity has to exceed the threshold") {
    const auto cached = sharing(10, 50);
    const std::vector slots{idle_slot(0, cached, 9), idle_slot(1, {}, 5)};
    const SlotChoice choice = choose_slot(slots, run_of(100), 0.1F, -1);
    CHECK(choice.id == 1);
    CHECK_FALSE(choice.by_similarity);
}

TEST_CASE("10 §6.2: of equally similar slots the first is chosen") {
    const auto cached = sharing(60, 80);
    const std::vector slots{idle_slot(0, cached, 9), idle_slot(1, cached, 1)};
    CHECK(choose_slot(slots, run_of(100), 0.1F, -1).id == 0);
}

TEST_CASE("10 §6.2: a threshold of 0 leaves similarity out") {
    const auto cached = sharing(60, 80);
    const std::vector slots{idle_slot(0, cached, 9), idle_slot(1, {}, 1)};
    CHECK(choose_slot(slots, run_of(100), 0.0F, -1).id == 1);
}

TEST_CASE("10 §6.2: memory under other adapters counts as nothing shared") {
    const auto cached = sharing(60, 80);
    std::vector slots{idle_slot(0, cached, 9), idle_slot(1, {}, 1)};
    slots[0].keeps_cache = false;
    CHECK(choose_slot(slots, run_of(100), 0.1F, -1).id == 1);
}

TEST_CASE("10 §6.2: a busy slot is not chosen however similar it is") {
    const auto cached = sharing(60, 80);
    std::vector slots{idle_slot(0, cached), idle_slot(1, {})};
    slots[0].idle = false;
    CHECK(choose_slot(slots, run_of(100), 0.1F, -1).id == 1);
}

TEST_CASE("10 §6.4: a slot that can speculate goes before older ones that can't (vector 15)") {
    std::vector slots{idle_slot(0, {}, 10), idle_slot(1, {}, 5), idle_slot(2, {}, -1)};
    slots[0].can_speculate = true;
    const SlotChoice choice = choose_slot(slots, run_of(4), 0.1F, -1);
    CHECK(choice.id == 0);
    CHECK(choice.exchange);
}

TEST_CASE("10 §6.4: slots that were never used go first, in the order of their ids") {
    const std::vector slots{idle_slot(0, {}, 3), idle_slot(1, {}, -1), idle_slot(2, {}, -1)};
    CHECK(choose_slot(slots, run_of(4), 0.1F, -1).id == 1);
}

TEST_CASE("10 §6.1: a named slot that is busy makes the request wait") {
    std::vector slots{idle_slot(0, {}), idle_slot(1, {})};
    slots[1].idle = false;
    CHECK(choose_slot(slots, run_of(4), 0.1F, 1).id == -1);
}

TEST_CASE("10 §6.5: what a named slot holds is assessed like that of any other") {
    const auto cached = sharing(60, 80);
    const std::vector slots{idle_slot(0, {}), idle_slot(1, cached)};
    const SlotChoice choice = choose_slot(slots, run_of(100), 0.1F, 1);
    CHECK(choice.id == 1);
    CHECK(choice.f_keep == doctest::Approx(0.75));
    CHECK_FALSE(choice.exchange);
}

TEST_CASE("10 §6.7: without an idle slot the request waits") {
    std::vector slots{idle_slot(0, {})};
    slots[0].idle = false;
    CHECK(choose_slot(slots, run_of(4), 0.1F, -1).id == -1);
}
