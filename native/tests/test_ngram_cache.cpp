// Counts of followers, lookup files, and the drafter that uses both.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <string>

#include "core/speculation/lookup_file.h"
#include "core/speculation/ngram_cache.h"
#include "core/speculation/ngram_drafters.h"
#include "ngram_texts.h"

using namespace paddock;

namespace {

constexpr std::int32_t n_vocab = 1000;

/// A lookup cache, written number by number; gone at the end of the test.
class LookupFile {
  public:
    explicit LookupFile(const Tokens& numbers, int n_bytes_less = 0) {
        static int n_made = 0;
        path_ = (std::filesystem::temp_directory_path() /
                 ("paddock-lookup-" + std::to_string(getpid()) + "-" + std::to_string(n_made++)))
                    .string();
        std::ofstream file(path_, std::ios::binary);
        file.write(reinterpret_cast<const char*>(numbers.data()),
                   static_cast<std::streamsize>(numbers.size() * sizeof(Token)) - n_bytes_less);
    }
    LookupFile(const LookupFile&) = delete;
    LookupFile& operator=(const LookupFile&) = delete;
    ~LookupFile() { std::remove(path_.c_str()); }

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// One record: the n-gram, and pairs of follower and count.
Tokens record(Tokens ngram, std::initializer_list<std::array<std::int32_t, 2>> followers) {
    ngram.resize(4, -1);
    ngram.push_back(static_cast<std::int32_t>(followers.size()));
    for (const auto& [token, count] : followers) {
        ngram.push_back(token);
        ngram.push_back(count);
    }
    return ngram;
}

bool is_readable(const Tokens& numbers, int n_bytes_less = 0) {
    const LookupFile file(numbers, n_bytes_less);
    NgramCounts counts;
    return !problem_of_lookup_file(file.path(), n_vocab, counts);
}

NgramCache cache(const std::string& static_file = "", const std::string& dynamic_file = "") {
    return {static_file, dynamic_file, 2, n_vocab};
}

/// Draft of one token after `text` with these records in the dynamic file.
Tokens after_dynamic(const Tokens& records, const Tokens& text) {
    const LookupFile file(records);
    return fresh_draft(cache("", file.path()), text, 1);
}

Tokens after_static(const Tokens& records, const Tokens& text) {
    const LookupFile file(records);
    return fresh_draft(cache(file.path()), text, 1);
}

}  // namespace

TEST_CASE("11 §6.6: what followed the longest n-gram is drafted") {
    // 3 alone was followed by 9 twice of three times.
    CHECK(fresh_draft(cache(), {7, 1, 2, 3, 4, 0, 3, 9, 5, 3, 9, 7, 1, 2, 3}, 1) == Tokens{4});
}

TEST_CASE("11 §6.6: one follower of three tokens is enough, one of two isn't") {
    CHECK(fresh_draft(cache(), {5, 1, 2, 3, 4, 8, 1, 2, 3}, 1) == Tokens{4});
    CHECK(fresh_draft(cache(), {5, 2, 3, 4, 8, 2, 3}, 1).empty());
    CHECK(fresh_draft(cache(), {5, 2, 3, 4, 8, 2, 3, 4, 6, 2, 3}, 1) == Tokens{4});
}

TEST_CASE("11 §6.6: a follower of three tokens needs half of them") {
    const Tokens twice{1, 2, 3, 4, 8, 1, 2, 3, 5, 9, 1, 2, 3};
    CHECK(fresh_draft(cache(), twice, 1) == Tokens{4});  // the smaller of two that are as frequent
    const Tokens thrice{1, 2, 3, 4, 8, 1, 2, 3, 5, 9, 1, 2, 3, 6, 0, 1, 2, 3};
    CHECK(fresh_draft(cache(), thrice, 1).empty());
}

TEST_CASE("11 §6.6: a follower of one token needs 66 % of them") {
    CHECK(fresh_draft(cache(), {3, 4, 10, 3, 4, 11, 3, 5, 12, 3}, 1) == Tokens{4});  // 2 of 3
    CHECK(fresh_draft(cache(), {3, 4, 10, 3, 5, 12, 3}, 1).empty());                 // 1 of 2
}

TEST_CASE("11 §6.6: drafted tokens count for the next one, up to eight") {
    CHECK(fresh_draft(cache(), repeated({1, 2, 3}, 4)) == Tokens{1, 2, 3, 1, 2, 3, 1, 2});
    CHECK(fresh_draft(cache(), repeated({1, 2, 3}, 4), 2) == Tokens{1, 2});
}

TEST_CASE("11 §6.6: the draft stops at the first token without a candidate") {
    const LookupFile file(joined({record({2, 3}, {{7, 2}}), record({3, 7}, {{8, 2}})}));
    CHECK(fresh_draft(cache(file.path()), {1, 2, 3}) == Tokens{7, 8});
}

TEST_CASE("11 §6.6: the dynamic file needs samples of 4, 3, 2, 2") {
    struct Case {
        Tokens ngram;
        std::int32_t enough;
    };
    for (const auto& [ngram, enough] :
         {Case{{3}, 4}, Case{{2, 3}, 3}, Case{{1, 2, 3}, 2}, Case{{0, 1, 2, 3}, 2}}) {
        CHECK(after_dynamic(record(ngram, {{7, enough}}), {0, 1, 2, 3}) == Tokens{7});
        CHECK(after_dynamic(record(ngram, {{7, enough - 1}}), {0, 1, 2, 3}).empty());
    }
}

TEST_CASE("11 §6.6: the dynamic file needs shares of 75, 66, 66, 66 percent") {
    struct Case {
        Tokens ngram;
        std::int32_t percent;
    };
    for (const auto& [ngram, percent] :
         {Case{{3}, 75}, Case{{2, 3}, 66}, Case{{1, 2, 3}, 66}, Case{{0, 1, 2, 3}, 66}}) {
        CHECK(after_dynamic(record(ngram, {{7, percent}, {8, 100 - percent}}), {0, 1, 2, 3}) == Tokens{7});
        CHECK(after_dynamic(record(ngram, {{7, percent - 1}, {8, 101 - percent}}), {0, 1, 2, 3}).empty());
    }
}

TEST_CASE("11 §6.6: the text itself goes before the dynamic file") {
    const Tokens text{1, 2, 3, 4, 8, 1, 2, 3};
    CHECK(after_dynamic(record({8, 1, 2, 3}, {{7, 100}}), text) == Tokens{4});
}

TEST_CASE("11 §6.6: the static file alone needs a sample of 2 and half of it") {
    const Tokens text{1, 2, 3};
    CHECK(after_static(record({2, 3}, {{7, 2}}), text) == Tokens{7});
    CHECK(after_static(record({2, 3}, {{7, 1}}), text).empty());
    CHECK(after_static(record({2, 3}, {{7, 50}, {8, 50}}), text) == Tokens{7});
    CHECK(after_static(record({2, 3}, {{7, 40}, {8, 30}, {9, 30}}), text).empty());
}

TEST_CASE("11 §6.6: only pairs of the static file count") {
    CHECK(after_static(record({3}, {{7, 100}}), {1, 2, 3}).empty());
    CHECK(after_static(record({1, 2, 3}, {{7, 100}}), {1, 2, 3}).empty());
}

TEST_CASE("11 §6.6: a follower that the static file knows ranks before a more frequent one") {
    // 4 and 5 each once behind 1 2 3; by count alone the smaller token is drafted.
    const Tokens text{1, 2, 3, 4, 8, 1, 2, 3, 5, 9, 1, 2, 3};
    CHECK(after_static(record({2, 3}, {{5, 1}}), text) == Tokens{5});
    CHECK(after_static(record({2, 3}, {{4, 1}, {5, 2}}), text) == Tokens{5});
    CHECK(after_static(record({2, 3}, {{4, 2}, {5, 1}}), text) == Tokens{4});
}

TEST_CASE("11 §6.6: the follower with the best rank needs its share too") {
    // Behind 1 2 3 and 2 3 came 4, 4 and 5: rank 2 to 100, share a third.
    const Tokens text{1, 2, 3, 4, 8, 1, 2, 3, 4, 7, 1, 2, 3, 5, 9, 1, 2, 3};
    CHECK(fresh_draft(cache(), text, 1) == Tokens{4});
    CHECK(after_static(record({2, 3}, {{5, 1}}), text).empty());
}

TEST_CASE("ngram-cache: counts of the largest size don't overflow") {
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const LookupFile statics(record({2, 3}, {{7, most}}));
    const LookupFile dynamics(joined({record({2, 3}, {{7, most}, {8, 5}}), record({2, 3}, {{7, most}})}));
    CHECK(fresh_draft(cache(statics.path(), dynamics.path()), {1, 2, 3}, 1) == Tokens{7});
}

TEST_CASE("ngram-cache: a text that grows token by token gives the drafts of a fresh one") {
    auto grown = cache();
    const Tokens text = joined({random_text(3, 300, 3), extreme_text(100)});
    std::size_t step = 1;
    for (std::size_t length = 1; length < text.size(); length += step++ % 5) {
        const Tokens beginning(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
        REQUIRE(draft_after(grown, beginning) == fresh_draft(cache(), beginning));
    }
}

TEST_CASE("ngram-cache: a text that was cut back gives the drafts of a fresh one") {
    auto drafter = cache();
    Tokens text = random_text(7, 600, 3);
    draft_after(drafter, text);
    for (const std::size_t kept : {599U, 590U, 500U, 320U, 90U, 2U}) {
        text.resize(kept);
        REQUIRE(draft_after(drafter, text) == fresh_draft(cache(), text));
        const Tokens more = random_text(static_cast<std::uint32_t>(kept), 40, 3);
        text.insert(text.end(), more.begin(), more.end());
        REQUIRE(draft_after(drafter, text) == fresh_draft(cache(), text));
    }
}

TEST_CASE("ngram-cache: a pending token that was replaced isn't counted") {
    auto drafter = cache();
    Tokens text{1, 2, 3, 4, 8, 1, 2, 3, 5};
    draft_after(drafter, text);
    text.back() = 4;
    draft_after(drafter, text);
    CHECK(draft_after(drafter, joined({text, {0, 1, 2, 3}}), 1) == Tokens{4});
    CHECK(draft_after(drafter, {1, 2, 3, 4, 8, 1, 2, 3}, 1) == Tokens{4});
}

TEST_CASE("ngram-cache: slots are apart, and forget at reset") {
    auto drafter = cache();
    const Tokens text{1, 2, 3, 4, 8, 1, 2, 3};
    drafter.begin(0, text);
    CHECK(draft_after(drafter, {1, 2, 3}, 1, 1).empty());
    drafter.reset(0);
    CHECK(draft_after(drafter, {1, 2, 3}, 1, 0).empty());
}

TEST_CASE("lookup file: counts of every record are there") {
    const LookupFile file(joined({record({5}, {{6, 2}, {7, 3}}), record({5, 6, 7, 8}, {{9, 4}})}));
    NgramCounts counts;
    REQUIRE_FALSE(problem_of_lookup_file(file.path(), n_vocab, counts));
    const auto count_of = [&](const Tokens& ngram) { return counts.count(counts.find(ngram)); };
    CHECK(count_of({5, 6}) == 2);
    CHECK(count_of({5, 7}) == 3);
    CHECK(counts.follower_sum(counts.find(Tokens{5})) == 5);
    CHECK(count_of({5, 6, 7, 8, 9}) == 4);
}

TEST_CASE("lookup file: an empty one has no n-grams") { CHECK(is_readable({})); }

TEST_CASE("lookup file: what isn't a lookup cache is refused") {
    CHECK(is_readable(record({5}, {{6, 2}})));
    CHECK_FALSE(is_readable(record({5}, {{6, 2}}), 1));  // cut off in a count
    CHECK_FALSE(is_readable(record({5}, {{6, 2}}), 8));  // follower missing
    CHECK_FALSE(is_readable(joined({record({5}, {{6, 2}}), {1}})));
    CHECK_FALSE(is_readable(record({5}, {})));
    CHECK_FALSE(is_readable({5, -1, -1, -1, -3}));
    CHECK_FALSE(is_readable({5, -1, -1, -1, std::numeric_limits<std::int32_t>::max(), 6, 2}));
    CHECK_FALSE(is_readable(record({5}, {{6, 0}})));
    CHECK_FALSE(is_readable(record({5}, {{6, -2}})));
    CHECK_FALSE(is_readable(record({5}, {{-6, 2}})));
    CHECK_FALSE(is_readable(record({-1}, {{6, 2}})));
    CHECK_FALSE(is_readable(record({5, -1, 7}, {{6, 2}})));
    CHECK_FALSE(is_readable(record({-2, 7}, {{6, 2}})));
}

TEST_CASE("lookup file: tokens that the model doesn't know are refused, and told") {
    const auto problem_of = [](const Tokens& numbers) {
        const LookupFile file(numbers);
        NgramCounts counts;
        return problem_of_lookup_file(file.path(), n_vocab, counts).value_or("");
    };
    CHECK(problem_of(record({n_vocab - 1}, {{n_vocab - 1, 2}})).empty());
    CHECK(problem_of(record({n_vocab}, {{6, 2}})).find("token 1000, but the model knows 0 to 999") == 10);
    CHECK(problem_of(record({5}, {{6, 2}, {2'000'000'000, 2}})).find("token 2000000000") == 10);
    CHECK(problem_of(record({5}, {{6, 0}})).find("record 1 has the follower 6, 0 times") !=
          std::string::npos);
}

TEST_CASE("lookup file: a folder, a pipe and a missing file are refused") {
    NgramCounts counts;
    CHECK(problem_of_lookup_file("/nowhere/at/all", n_vocab, counts));
    CHECK(problem_of_lookup_file(std::filesystem::temp_directory_path().string(), n_vocab, counts));
    const LookupFile taken({});
    std::remove(taken.path().c_str());
    REQUIRE(mkfifo(taken.path().c_str(), 0600) == 0);
    CHECK(problem_of_lookup_file(taken.path(), n_vocab, counts));
}

TEST_CASE("11 §6.6: a file that can't be read drops the type") {
    std::string reason;
    std::string detail;
    SpeculationParams params;
    params.lookup_dynamic = "/nowhere/at/all";
    CHECK_FALSE(make_ngram_drafter(DraftType::ngram_cache, params, 1, n_vocab, reason, detail));
    CHECK(reason == "cache-file");
    CHECK(detail.find("'/nowhere/at/all' can't be opened: No such file") != std::string::npos);
    params = {};
    params.lookup_static = "/nowhere/at/all";
    CHECK_FALSE(make_ngram_drafter(DraftType::ngram_cache, params, 1, n_vocab, reason, detail));
}
