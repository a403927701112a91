#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/probabilities.h"

using namespace paddock;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<Token> tokens_of(const TokenRecord& record) {
    std::vector<Token> tokens;
    for (const TokenProbability& entry : record.top) tokens.push_back(entry.token);
    return tokens;
}

const std::vector<float> logits{0.0F, std::log(3.0F), std::log(4.0F), -infinity};

}  // namespace

TEST_CASE("the chosen token has its share of the softmax") {
    CHECK(record_of(logits, 1, 0).chosen.probability == doctest::Approx(3.0 / 8.0));
}

TEST_CASE("the top list is sorted descending") {
    CHECK(tokens_of(record_of(logits, 0, 3)) == std::vector<Token>{2, 1, 0});
}

TEST_CASE("the top list has no more entries than were asked for") {
    CHECK(tokens_of(record_of(logits, 0, 1)) == std::vector<Token>{2});
}

TEST_CASE("the top list has no more entries than there are tokens") {
    CHECK(record_of(logits, 0, std::numeric_limits<std::int32_t>::max()).top.size() == logits.size());
}

TEST_CASE("a negative count gives an empty top list") { CHECK(record_of(logits, 0, -1).top.empty()); }

TEST_CASE("probabilities of a whole vocabulary add up to one") {
    double sum = 0.0;
    for (const TokenProbability& entry : record_of(logits, 0, 4).top) sum += entry.probability;
    CHECK(sum == doctest::Approx(1.0));
}

TEST_CASE("a forbidden token has probability zero") {
    CHECK(record_of(logits, 3, 0).chosen.probability == 0.0F);
}

TEST_CASE("equal logits come in the order of their ids") {
    CHECK(tokens_of(record_of(std::vector<float>{1.0F, 2.0F, 2.0F, 2.0F}, 0, 3)) ==
          std::vector<Token>{1, 2, 3});
}

TEST_CASE("great logits don't overflow") {
    const TokenRecord record = record_of(std::vector<float>{3e38F, 3e38F}, 0, 2);
    CHECK(record.chosen.probability == doctest::Approx(0.5));
}

TEST_CASE("a value that is no number is impossible and leaves the rest alone") {
    const TokenRecord record = record_of(std::vector<float>{not_a_number, 1.0F, infinity, 1.0F}, 1, 4);
    CHECK(record.chosen.probability == doctest::Approx(0.5));
    CHECK(tokens_of(record) == std::vector<Token>{1, 3, 0, 2});
}

TEST_CASE("without a number among them all probabilities are zero") {
    const TokenRecord record = record_of(std::vector<float>{not_a_number, -infinity}, 0, 2);
    CHECK(record.chosen.probability == 0.0F);
    CHECK(record.top.front().probability == 0.0F);
}

TEST_CASE("no logits at all make a record of the chosen token alone") {
    const TokenRecord record = record_of(std::vector<float>{}, 7, 3);
    CHECK(record.chosen.token == 7);
    CHECK(record.top.empty());
}

TEST_CASE("candidates are normalised among themselves") {
    const std::vector<ScoredToken> candidates{{9, 1.0F}, {4, 1.0F}};
    const TokenRecord record = record_of(candidates, 9, 2);
    CHECK(record.chosen.probability == doctest::Approx(0.5));
    CHECK(tokens_of(record) == std::vector<Token>{4, 9});
}

TEST_CASE("a chosen token that was filtered out has probability zero") {
    CHECK(record_of(std::vector<ScoredToken>{{9, 1.0F}}, 8, 1).chosen.probability == 0.0F);
}
