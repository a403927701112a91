#include "core/speculation/lookup_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
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

/// Throws it where a file is none that can be used.
class Problem : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr const char* make_it_anew = "; make it anew with llama.cpp's lookup-create and this model";

void expect_known(Token token, std::int32_t n_vocab) {
    if (token >= n_vocab) {
        throw Problem("holds the token " + std::to_string(token) + ", but the model knows 0 to " +
                      std::to_string(n_vocab - 1) + make_it_anew);
    }
}

[[noreturn]] void fail_at(std::int64_t record, const std::string& what) {
    throw Problem("is no lookup cache: record " + std::to_string(record) + " " + what + make_it_anew);
}

/// One file on its way into counts.
class Records {
  public:
    Records(std::ifstream& file, std::int32_t n_vocab, NgramCounts& counts)
        : file_(file), n_vocab_(n_vocab), counts_(counts) {}

    void read_all() {
        Head head{};
        while (read(file_, head)) {
            ++record_;
            read_one(head);
        }
        if (!file_.eof()) {
            throw Problem("can't be read to its end");
        }
        if (file_.gcount() != 0) {
            fail_at(record_ + 1, "ends too soon");
        }
    }

  private:
    void read_one(const Head& head) {
        const auto ngram = ngram_of(head);
        const std::int32_t n_followers = head.back();
        if (!ngram) {
            fail_at(record_, "has no n-gram of 1 to 4 tokens");
        }
        if (n_followers <= 0) {
            fail_at(record_, "has " + std::to_string(n_followers) + " followers");
        }
        NgramCounts::Node node = NgramCounts::root;
        for (const Token token : *ngram) {
            // Known without a count: how often it is a follower itself is in a record of its own.
            node = added(node, token, 0);
        }
        for (std::int32_t i = 0; i < n_followers; ++i) {
            read_follower(node);
        }
    }

    void read_follower(NgramCounts::Node node) {
        Pair pair{};
        if (!read(file_, pair)) {
            fail_at(record_, "ends too soon");
        }
        const auto [token, count] = pair;
        if (token < 0 || count <= 0) {
            fail_at(record_,
                    "has the follower " + std::to_string(token) + ", " + std::to_string(count) + " times");
        }
        added(node, token, count);
    }

    NgramCounts::Node added(NgramCounts::Node node, Token token, std::int32_t count) {
        expect_known(token, n_vocab_);
        const NgramCounts::Node found = counts_.add(node, token, count);
        if (found == NgramCounts::none) {
            throw Problem("has more n-grams than can be counted; make a smaller one");
        }
        return found;
    }

    std::ifstream& file_;
    std::int32_t n_vocab_;
    NgramCounts& counts_;
    std::int64_t record_ = 0;
};

void read_file(const std::string& path, std::int32_t n_vocab, NgramCounts& counts) {
    std::error_code error;
    // Others may never end, or block.
    const auto status = std::filesystem::status(path, error);
    if (error) {
        throw Problem("can't be opened: " + error.message() + "; check the name and its rights");
    }
    if (!std::filesystem::is_regular_file(status)) {
        throw Problem("is no regular file; name a lookup cache");
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error || size > max_bytes) {
        throw Problem("has " + std::to_string(size) + " bytes; " + std::to_string(max_bytes) +
                      " are allowed, make a smaller one");
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw Problem("can't be opened; check its rights");
    }
    Records(file, n_vocab, counts).read_all();
}

}  // namespace

std::optional<std::string> problem_of_lookup_file(const std::string& path, std::int32_t n_vocab,
                                                  NgramCounts& counts) {
    try {
        read_file(path, n_vocab, counts);
    } catch (const Problem& problem) {
        return problem.what();
    } catch (const std::bad_alloc&) {
        return "takes more memory than there is; make a smaller one";
    }
    return std::nullopt;
}

}  // namespace paddock
