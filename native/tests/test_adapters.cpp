#include <doctest/doctest.h>

#include <vector>

#include "core/adapters.h"

using namespace paddock;

namespace {

std::vector<LoraView> server_of(std::size_t count) {
    std::vector<LoraView> loras(count);
    for (std::size_t i = 0; i < count; ++i) {
        loras[i].id = static_cast<std::int32_t>(i);
        loras[i].scale = 1.0F;
    }
    return loras;
}

const std::vector<bool> plain{false, false};
const std::vector<bool> activated{true, true};

}  // namespace

TEST_CASE("10 §19.2: adapters that a request doesn't name are off (vector 18)") {
    const auto scales = wanted_scales(server_of(3), ScaleMap{{1, 0.5F}});
    CHECK(scales == std::vector<AdapterScale>{{0, 0.0F}, {1, 0.5F}, {2, 0.0F}});
}

TEST_CASE("10 §19.2: an adapter that doesn't exist is refused by number (vector 18)") {
    const auto problem = problem_of_scales({{7, 1.0F}}, 3);
    REQUIRE(problem.has_value());
    CHECK(problem->find("adapter 7") != std::string::npos);
    CHECK(problem_of_scales({{-1, 1.0F}}, 3).has_value());
    CHECK_FALSE(problem_of_scales({{0, 1.0F}, {2, 1.0F}}, 3).has_value());
}

TEST_CASE("10 §19.2: a request without scales takes the server's") {
    CHECK(wanted_scales(server_of(2), std::nullopt) == std::vector<AdapterScale>{{0, 1.0F}, {1, 1.0F}});
}

TEST_CASE("10 §19.3: memory stays under equal scales only") {
    const std::vector<AdapterScale> half{{0, 0.5F}, {1, 0.0F}};
    const std::vector<AdapterScale> full{{0, 1.0F}, {1, 0.0F}};
    CHECK(keeps_cache(half, half, plain));
    CHECK_FALSE(keeps_cache(half, full, plain));
}

TEST_CASE("10 §19.3: memory stays when everything enabled is an activated adapter") {
    const std::vector<AdapterScale> first{{0, 1.0F}, {1, 0.0F}};
    const std::vector<AdapterScale> second{{0, 0.0F}, {1, 1.0F}};
    CHECK(keeps_cache(first, second, activated));
    CHECK_FALSE(keeps_cache(first, second, {true, false}));
}

TEST_CASE("10 §19.4: the key holds what is enabled and not activated, in order") {
    const std::vector<AdapterScale> scales{{0, 1.0F}, {1, 0.0F}, {2, 0.5F}, {3, 0.25F}};
    CHECK(lora_key(scales, {false, false, true, false}) == LoraKey{{0, 1.0F}, {3, 0.25F}});
}

TEST_CASE("10 §19.5: an invocation starts where its first token stands (vectors 8 and 9)") {
    const std::vector<Token> invocation{7, 8};
    CHECK(alora_start(std::vector<Token>{1, 7, 8, 2}, invocation) == 1U);
    CHECK(alora_start(std::vector<Token>{1, 2, 3, 7, 8}, invocation) == 3U);
}

TEST_CASE("10 §19.5: a token that repeats the end of the invocation doesn't hide it (vector 10)") {
    CHECK(alora_start(std::vector<Token>{7, 8, 8}, std::vector<Token>{7, 8}) == 0U);
}

TEST_CASE("10 §19.5: of several invocations the last counts, overlapping ones included") {
    CHECK(alora_start(std::vector<Token>{7, 8, 1, 7, 8}, std::vector<Token>{7, 8}) == 3U);
    CHECK(alora_start(std::vector<Token>{7, 7, 7, 8}, std::vector<Token>{7, 7, 8}) == 1U);
}

TEST_CASE("10 §19.5: a prompt without the invocation has no start") {
    CHECK_FALSE(alora_start(std::vector<Token>{1, 2}, std::vector<Token>{7, 8}).has_value());
    CHECK_FALSE(alora_start(std::vector<Token>{1, 2}, {}).has_value());
    CHECK_FALSE(alora_start({}, std::vector<Token>{7}).has_value());
}
