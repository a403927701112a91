#include "core/speculation/lookup_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <span>
#include <system_error>

namespace paddock {

namespace {

constexpr std::uintmax_t max_bytes = std::uintmax_t{2} << 30U;
/// In the place of a token that an n-gram doesn't have.
constexpr Token no_token = -1;

using Pair = std::array<std::int32_t, 2>;
using Head = std::array<std::int32_t, NgramCounts::max_size + 1>;

template <class Numbers>
bool read(std::ifstream& file, Numbers& numbers) {
    return static_cast<bool>(file.read(reinterpret_cast<char*>(numbers.data()), sizeof(numbers)));
}

/// Nothing when it is none, or has a gap.
std::optional<std::span<const Token>> ngram_of(const Head& head) {
    const auto* const end = head.begin() + NgramCounts::max_size;
    const auto* const last = std::find(head.begin(), end, no_token);
    const bool is_whole = std::all_of(head.begin(), last, [](Token token) { return token >= 0; });
    const bool is_filled_up = std::all_of(last, end, [](Token token) { return token == no_token; });
    if (last == head.begin() || !is_whole || !is_filled_up) {
        return std::nullopt;
    }
    return std::span(head.begin(), last);
}

bool read_followers(std::ifstream& file, std::int32_t n_followers, NgramCounts::Node node,
                    NgramCounts& counts) {
    for (std::int32_t i = 0; i < n_followers; ++i) {
        Pair pair{};
        if (!read(file, pair)) {
            return false;
        }
        const auto [token, count] = pair;
        if (token < 0 || count <= 0 || counts.add(node, token, count) == NgramCounts::none) {
            return false;
        }
    }
    return true;
}

bool read_record(std::ifstream& file, const Head& head, NgramCounts& counts) {
    const auto ngram = ngram_of(head);
    const std::int32_t n_followers = head.back();
    if (!ngram || n_followers <= 0) {
        return false;
    }
    NgramCounts::Node node = NgramCounts::root;
    for (const Token token : *ngram) {
        // Known without a count: how often it is a follower itself is in a record of its own.
        node = counts.add(node, token, 0);
        if (node == NgramCounts::none) {
            return false;
        }
    }
    return read_followers(file, n_followers, node, counts);
}

bool read_records(std::ifstream& file, NgramCounts& counts) {
    Head head{};
    while (read(file, head)) {
        if (!read_record(file, head, counts)) {
            return false;
        }
    }
    return file.eof() && file.gcount() == 0;
}

}  // namespace

bool read_lookup_file(const std::string& path, NgramCounts& counts) {
    std::error_code error;
    // Others may never end, or block.
    if (!std::filesystem::is_regular_file(path, error) || error) {
        return false;
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error || size > max_bytes) {
        return false;
    }
    try {
        std::ifstream file(path, std::ios::binary);
        return file && read_records(file, counts);
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace paddock
