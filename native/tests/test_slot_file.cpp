// The structure of slot files.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/slot_file.h"

using namespace paddock;

namespace {

using Numbers = std::vector<std::uint32_t>;

constexpr SlotFileParts one_cache{};
constexpr SlotFileParts two_caches{.n_caches = 2, .has_running_state = false};
constexpr SlotFileParts hybrid{.n_caches = 1, .has_running_state = true};
constexpr SlotFileParts recurrent{.n_caches = 0, .has_running_state = true};
constexpr std::uint32_t huge = 0x7fffffff;

Numbers joined(std::initializer_list<Numbers> parts) {
    Numbers all;
    for (const Numbers& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

Numbers header(std::uint32_t n_tokens) {
    Numbers numbers{0x67677371, 2, n_tokens};
    numbers.resize(numbers.size() + n_tokens, 7);
    return numbers;
}

/// Of one stream of two, each in sequence 0.
Numbers cells(const Numbers& positions) {
    Numbers numbers{2, 0, static_cast<std::uint32_t>(positions.size())};
    for (const std::uint32_t position : positions) {
        numbers.insert(numbers.end(), {position, 1, 0});
    }
    return numbers;
}

/// Keys and values of one layer, 8 bytes to a row.
Numbers layers(std::size_t n_cells, bool by_column = false) {
    Numbers numbers{static_cast<std::uint32_t>(by_column), 1, 1, 8, 0};
    numbers.resize(numbers.size() + 2 * n_cells, 99);
    const Numbers values = by_column ? Numbers{1, 4, 2} : Numbers{1, 8, 0};
    numbers.insert(numbers.end(), values.begin(), values.end());
    numbers.resize(numbers.size() + 2 * n_cells, 99);
    return numbers;
}

std::string problem_of(const Numbers& numbers, const SlotFileParts& parts, std::size_t capacity = 8) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("paddock-slot-file-" + std::to_string(getpid()))).string();
    {
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(numbers.data()),
                   static_cast<std::streamsize>(numbers.size() * sizeof(std::uint32_t)));
    }
    const auto problem = problem_of_slot_file(path, capacity, parts);
    std::filesystem::remove(path);
    return problem.value_or("");
}

bool tells(const std::string& problem, const std::string& part) {
    return problem.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("slot file: what was saved is sound") {
    CHECK(problem_of(joined({header(3), cells({0, 1, 2}), layers(3)}), one_cache).empty());
    CHECK(problem_of(joined({header(3), cells({2, 0, 1}), layers(3)}), one_cache).empty());
    CHECK(problem_of(joined({header(0), {2, 0, 0}}), one_cache).empty());
    for (const bool by_column : {false, true}) {
        const Numbers first = joined({header(3), cells({0, 1, 2}), layers(3, by_column)});
        CHECK(problem_of(joined({first, cells({1, 2}), layers(2)}), two_caches).empty());
        CHECK(problem_of(joined({first, {1, 2, 0}}), hybrid).empty());
    }
    CHECK(problem_of(joined({header(3), {1, 2, 0}}), recurrent).empty());
}

TEST_CASE("slot file: cells with a place in a picture, and keys without values") {
    const Numbers placed{1, 2, 0, 1, 5, 6, 0, 1, 1, 5, 6, 0};
    CHECK(problem_of(joined({header(2), placed, layers(2)}), one_cache).empty());
    const Numbers keys{0, 1, 1, 4, 0, 9, 9};
    CHECK(problem_of(joined({header(2), cells({0, 1}), keys, {1, 1, 0}}), hybrid).empty());
}

TEST_CASE("slot file: counts of cells are those of the tokens") {
    const auto with_count = [](std::uint32_t n_cells) { return joined({header(3), {1, n_cells, 0, 1, 0}}); };
    CHECK(tells(problem_of(with_count(huge), one_cache), "2147483647 cells for 3 tokens"));
    CHECK(tells(problem_of(with_count(2), one_cache), "2 cells for 3 tokens"));
    CHECK(tells(problem_of(joined({header(3), {huge, 3}}), one_cache), "2147483647 streams"));
    const Numbers first = joined({header(3), cells({0, 1, 2}), layers(3)});
    CHECK(tells(problem_of(joined({first, {1, huge}}), two_caches), "2147483647 cells"));
    CHECK(tells(problem_of(joined({first, {huge, 2, 0}}), hybrid), "2147483647 states"));
    CHECK(tells(problem_of(joined({header(3), {huge, 2, 0}}), recurrent), "2147483647 states"));
}

TEST_CASE("slot file: only one stream has cells") {
    const Numbers first = joined({header(1), {3, 1, 0, 1, 0}, layers(1)});
    CHECK(problem_of(joined({first, {0, 0}}), one_cache).empty());
    CHECK(tells(problem_of(joined({first, {0, huge}}), one_cache), "two streams"));
    CHECK(tells(problem_of(joined({first, {0}}), one_cache), "ends too soon"));
}

TEST_CASE("slot file: each token has its cell") {
    CHECK(tells(problem_of(joined({header(2), cells({0, huge})}), one_cache), "position 2147483647"));
    CHECK(tells(problem_of(joined({header(2), cells({0, 0xfffffff0})}), one_cache), "position -16"));
    CHECK(tells(problem_of(joined({header(2), cells({1, 1})}), one_cache), "two cells at position 1"));
    CHECK(tells(problem_of(joined({header(1), {1, 1, 0, huge, 0}}), one_cache), "2147483647 sequences"));
    CHECK(tells(problem_of(joined({header(2), cells({0, 1}), layers(2), {1, huge, 0}}), hybrid),
                "position 2147483647"));
}

TEST_CASE("slot file: other files, other versions, too many tokens and missing ends are refused") {
    CHECK(tells(problem_of({}, one_cache), "ends too soon"));
    CHECK(tells(problem_of({1, 2, 3}, one_cache), "no slot file"));
    CHECK(tells(problem_of({0x67677371, 9, 0}, one_cache), "version 9"));
    CHECK(tells(problem_of(header(9), one_cache), "9 tokens; a slot has room for 8"));
    CHECK(tells(problem_of({0x67677371, 2, huge}, one_cache, std::size_t{1} << 40U), "ends too soon"));
    CHECK(tells(problem_of(joined({header(3), cells({0, 1})}), one_cache), "2 cells"));
    CHECK(tells(problem_of(joined({header(2), {1, 2, 0, 1}}), one_cache), "ends too soon"));
    Numbers long_rows = joined({header(1), cells({0}), {0, 1, 1, huge, huge}});
    CHECK(tells(problem_of(long_rows, two_caches), "ends too soon"));
}

TEST_CASE("slot file: a folder and a missing file are refused") {
    const std::string folder = std::filesystem::temp_directory_path().string();
    CHECK(problem_of_slot_file(folder, 8, one_cache).value_or("") == "is no regular file");
    CHECK(problem_of_slot_file(folder + "/nowhere/at/all", 8, one_cache).has_value());
}
