// The greatest logits of a row, against a look at each of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "core/best_logits.h"

using namespace paddock;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> logit(0.0F, 4.0F);
    std::vector<float> row(n);
    for (float& value : row) {
        value = logit(random);
    }
    return row;
}

/// Ids of the `n` greatest, smaller ids first where logits are equal.
std::vector<Token> sorted_best(const std::vector<float>& row, std::size_t n) {
    std::vector<Token> ids(row.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<Token>(i);
    }
    const auto logit = [&](Token id) { return row[static_cast<std::size_t>(id)]; };
    std::ranges::stable_sort(ids, [&](Token a, Token b) { return logit(a) > logit(b); });
    ids.resize(n);
    return ids;
}

bool holds(const BestLogits& best, Token token) {
    return std::ranges::find(best.found(), token, &ScoredToken::token) != best.found().end();
}

}  // namespace

TEST_CASE("11 §11.7: the k best of a row are found, and few more") {
    BestLogits best;
    for (const std::size_t n_vocab : {6400U, 6431U, 49152U, 151936U}) {
        for (const std::size_t k : {1U, 2U, 40U, 64U}) {
            CAPTURE(n_vocab);
            CAPTURE(k);
            const std::vector<float> row = random_row(n_vocab, n_vocab + k);
            REQUIRE(best.find(row, k));
            for (const Token token : sorted_best(row, k)) {
                CHECK(holds(best, token));
            }
            CHECK(best.found().size() < 3 * k);
            CHECK(std::ranges::is_sorted(best.found(), {}, &ScoredToken::token));
            CHECK(best.greatest(row) == sorted_best(row, 1).front());
        }
    }
}

TEST_CASE("the greatest may be anywhere, the end of the row included") {
    BestLogits best;
    for (const std::size_t at : {0U, 63U, 64U, 100U, 191U, 192U, 199U}) {
        std::vector<float> row(200, -1.0F);
        row[at] = 2.0F;
        CHECK(best.greatest(row) == static_cast<Token>(at));
    }
    CHECK(best.greatest(std::vector<float>{1.0F, 3.0F, 2.0F}) == 1);
}

TEST_CASE("a greatest logit that two tokens share decides nothing") {
    BestLogits best;
    std::vector<float> row = random_row(1000, 1);
    row[10] = row[700] = 99.0F;
    CHECK_FALSE(best.greatest(row).has_value());
    row[10] = row[11] = 100.0F;
    CHECK_FALSE(best.greatest(row).has_value());
    row[11] = 0.0F;
    CHECK(best.greatest(row) == 10);
}

TEST_CASE("every token that shares the last place is found") {
    BestLogits best;
    std::vector<float> row = random_row(6400, 2);
    row[5] = row[6000] = row[6001] = 50.0F;
    REQUIRE(best.find(row, 2));
    for (const Token token : {5, 6000, 6001}) {
        CHECK(holds(best, token));
    }
}

TEST_CASE("logits that are no numbers are passed over, and infinite ones decide nothing") {
    BestLogits best;
    std::vector<float> row = random_row(6400, 3);
    row[0] = row[64] = row[6399] = no_number;
    row[1] = -infinity;
    REQUIRE(best.find(row, 40));
    CHECK_FALSE(holds(best, 0));
    CHECK(best.greatest(row) == sorted_best(random_row(6400, 3), 1).front());
    row[2] = infinity;
    CHECK_FALSE(best.greatest(row).has_value());
    CHECK_FALSE(best.find(row, 40));
    const std::vector<float> nothing(6400, no_number);
    CHECK_FALSE(best.greatest(nothing).has_value());
    CHECK_FALSE(best.find(nothing, 1));
    CHECK_FALSE(best.greatest({}).has_value());
}

TEST_CASE("a row of too few tokens, or none wanted, is not worth it") {
    BestLogits best;
    const std::vector<float> row = random_row(640, 4);
    CHECK(best.find(row, 10));
    CHECK_FALSE(best.find(row, 11));
    CHECK_FALSE(best.find(row, 0));
    CHECK_FALSE(best.find({}, 1));
    CHECK(best.found().empty());
}
