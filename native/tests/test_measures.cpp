// Vectors, rates and times.
#include <doctest/doctest.h>

#include <vector>

#include "core/embeddings.h"
#include "core/rates.h"
#include "core/timings.h"

using namespace paddock;

namespace {

constexpr Micros second = 1'000'000;

std::vector<float> normalised(std::vector<float> vector, std::int32_t mode) {
    normalise(vector, mode);
    return vector;
}

}  // namespace

TEST_CASE("10 §18.2: mode -1 leaves a vector alone") {
    CHECK(normalised({3.0F, -4.0F}, -1) == std::vector<float>{3.0F, -4.0F});
}

TEST_CASE("10 §18.2: mode 0 makes the largest absolute value 32760") {
    CHECK(normalised({2.0F, -4.0F}, 0) == std::vector<float>{16380.0F, -32760.0F});
}

TEST_CASE("10 §18.2: mode 1 makes the absolute values sum up to 1") {
    const auto vector = normalised({3.0F, -1.0F}, 1);
    CHECK(vector[0] == doctest::Approx(0.75));
    CHECK(vector[1] == doctest::Approx(-0.25));
}

TEST_CASE("10 §18.2: mode 2 makes the length 1") {
    const auto vector = normalised({3.0F, -4.0F}, 2);
    CHECK(vector[0] == doctest::Approx(0.6));
    CHECK(vector[1] == doctest::Approx(-0.8));
}

TEST_CASE("10 §18.2: greater modes are norms of that power, however great") {
    CHECK(normalised({1.0F, 1.0F}, 3)[0] == doctest::Approx(0.7937005));
    CHECK(normalised({1e30F, 1e-30F}, 1000)[0] == doctest::Approx(1.0));
}

TEST_CASE("10 §18.2: zeros stay zeros in every mode") {
    for (const std::int32_t mode : {0, 1, 2, 5}) {
        CHECK(normalised({0.0F, 0.0F}, mode) == std::vector<float>{0.0F, 0.0F});
    }
}

TEST_CASE("10 §24.3: a rate is tokens over the time that was spent on them") {
    SlidingRate rate;
    rate.add(100, 2 * second, 10 * second);
    rate.add(50, second, 11 * second);
    CHECK(rate.per_second(12 * second) == doctest::Approx(50.0));
}

TEST_CASE("10 §24.3: what is older than a minute is forgotten") {
    SlidingRate rate;
    rate.add(1000, second, 10 * second);
    rate.add(10, second, 40 * second);
    CHECK(rate.per_second(69 * second) == doctest::Approx(505.0));
    CHECK(rate.per_second(70 * second) == doctest::Approx(10.0));
}

TEST_CASE("10 §24.3: an empty window has the rate 0") {
    SlidingRate rate;
    CHECK(rate.per_second(0) == 0.0);
    rate.add(10, second, 0);
    CHECK(rate.per_second(3600 * second) == 0.0);
}

TEST_CASE("10 §24.3: tokens that took no time make no infinite rate") {
    SlidingRate rate;
    rate.add(10, 0, 0);
    CHECK(rate.per_second(0) == 0.0);
}

TEST_CASE("10 §5.5: times are told in milliseconds, for each token, and as tokens a second") {
    const Timings timings = make_timings(7, 10, 20'000, 4, 2'000'000);
    CHECK(timings.cache_n == 7);
    CHECK(timings.prompt_n == 10);
    CHECK(timings.prompt_ms == doctest::Approx(20.0));
    CHECK(timings.prompt_per_token_ms == doctest::Approx(2.0));
    CHECK(timings.prompt_per_second == doctest::Approx(500.0));
    CHECK(timings.predicted_n == 4);
    CHECK(timings.predicted_per_token_ms == doctest::Approx(500.0));
    CHECK(timings.predicted_per_second == doctest::Approx(2.0));
}

TEST_CASE("10 §5.5: a ratio with nothing below the line is 0") {
    const Timings timings = make_timings(0, 0, 0, 0, 0);
    CHECK(timings.prompt_per_token_ms == 0.0);
    CHECK(timings.prompt_per_second == 0.0);
    CHECK(timings.predicted_per_token_ms == 0.0);
    CHECK(timings.predicted_per_second == 0.0);
}
