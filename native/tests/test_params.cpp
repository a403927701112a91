#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "core/params.h"

using namespace paddock;

namespace {

EngineParams valid() {
    EngineParams params;
    params.model_path = "model.gguf";
    return params;
}

/// The one problem of parameters that are valid but for a change.
std::string problem_of(const std::function<void(EngineParams&)>& change) {
    EngineParams params = valid();
    change(params);
    const auto problems = problems_of(params);
    REQUIRE(problems.size() == 1);
    return problems.front();
}

bool names(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("10 §3.1: the defaults are valid") { CHECK(problems_of(valid()).empty()); }

TEST_CASE("10 §3.1: every violation is reported") {
    EngineParams params = valid();
    params.n_ctx = -1;
    params.split_mode = "diagonal";
    params.n_threads = 0;
    CHECK(problems_of(params).size() == 3);
}

TEST_CASE("10 §3.1: a number outside its range is named with the range") {
    const std::string problem = problem_of([](EngineParams& params) { params.flash_attention = 2; });
    CHECK(names(problem, "--flash-attn"));
    CHECK(names(problem, "2"));
    CHECK(names(problem, "from -1 to 1"));
}

TEST_CASE("10 §3.1: a word that isn't one of its list is named with the list") {
    const std::string problem = problem_of([](EngineParams& params) { params.cache_type_k = "q3_0"; });
    CHECK(names(problem, "--cache-type-k is 'q3_0'"));
    CHECK(names(problem, "q8_0"));
}

TEST_CASE("10 §3.1: numbers that aren't finite are refused") {
    CHECK(names(problem_of([](EngineParams& params) {
                    params.rope_freq_base = std::numeric_limits<float>::infinity();
                }),
                "--rope-freq-base"));
    CHECK(names(problem_of([](EngineParams& params) {
                    params.slot_prompt_similarity = std::numeric_limits<float>::quiet_NaN();
                }),
                "--slot-prompt-similarity"));
}

TEST_CASE("10 §13.1: a batch has a row for each slot") {
    const std::string problem = problem_of([](EngineParams& params) {
        params.n_parallel = 9;
        params.n_batch = 8;
    });
    CHECK(names(problem, "--parallel"));
    CHECK(names(problem, "--batch-size"));
}

TEST_CASE("10 §3.7: the number of slots may be left open") {
    EngineParams params = valid();
    params.n_parallel = 0;
    CHECK(problems_of(params).size() == 1);
    params.n_parallel = -1;
    CHECK(problems_of(params).empty());
}

TEST_CASE("12 §19.6: a quantised V cache without flash attention is refused with both names") {
    const std::string problem = problem_of([](EngineParams& params) {
        params.cache_type_v = "q8_0";
        params.flash_attention = 0;
    });
    CHECK(names(problem, "--cache-type-v"));
    CHECK(names(problem, "--flash-attn"));
}

TEST_CASE("12 §19.6: reranking goes with its own pooling only") {
    CHECK(names(problem_of([](EngineParams& params) {
                    params.reranking = true;
                    params.pooling = "mean";
                }),
                "--pooling"));
}

TEST_CASE("10 §3.1: a metadata override has to suit its type") {
    EngineParams params = valid();
    params.metadata_overrides = {
        {"a.b", "int", "12"}, {"a.b", "float", "1.5"}, {"a.b", "bool", "true"}, {"a.b", "str", "x"}};
    CHECK(problems_of(params).empty());
    params.metadata_overrides = {{"a.b", "int", "12x"},
                                 {"a.b", "bool", "yes"},
                                 {"", "str", "x"},
                                 {"a.b", "str", std::string(128, 'x')}};
    CHECK(problems_of(params).size() == 4);
}

TEST_CASE("10 §3.1: a tensor pattern has to be a regular expression") {
    CHECK(names(problem_of([](EngineParams& params) { params.tensor_placements = {{"blk.(", "CPU"}}; }),
                "no regular expression"));
}

TEST_CASE("10 §3.1: a split has to give some device something") {
    CHECK(names(problem_of([](EngineParams& params) { params.tensor_split = {0.0F, 0.0F}; }),
                "--tensor-split"));
}
