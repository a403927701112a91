#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/stop_strings.h"
#include "core/utf8.h"

using namespace paddock;

namespace {

StopStrings fed(const std::vector<std::string>& words, std::string_view text) {
    StopStrings stops(words);
    stops.feed(text);
    return stops;
}

/// What 10 §16.3 says, by the plainest search.
std::optional<StopHit> first_hit(const std::vector<std::string>& words, const std::string& text) {
    std::optional<StopHit> best;
    for (std::size_t word = 0; word < words.size(); ++word) {
        const std::size_t start = text.find(words[word]);
        if (start != std::string::npos && (!best.has_value() || start < best->start)) {
            best = StopHit{start, word};
        }
    }
    return best;
}

}  // namespace

TEST_CASE("10 §16.3: the word that begins first wins (vector 12)") {
    const StopStrings stops = fed({"END", "ND"}, "xEND");
    REQUIRE(stops.hit().has_value());
    CHECK(stops.hit()->start == 1);
    CHECK(stops.hit()->word == 0);
}

TEST_CASE("10 §16.3: it wins when it is listed last, too") {
    const StopStrings stops = fed({"ND", "END"}, "xEND");
    REQUIRE(stops.hit().has_value());
    CHECK(stops.hit()->start == 1);
    CHECK(stops.hit()->word == 1);
}

TEST_CASE("10 §16.3: of words that begin together the first listed wins") {
    CHECK(fed({"abc", "ab"}, "abc").hit()->word == 0);
    CHECK(fed({"ab", "abc"}, "abc").hit()->word == 0);
    CHECK(fed({"ab", "ab"}, "ab").hit()->word == 0);
}

TEST_CASE("10 §16.3: a word is found across pieces") {
    StopStrings stops(std::vector<std::string>{"<END>"});
    stops.feed("a<E");
    CHECK(stops.may_continue());
    stops.feed("ND>b");
    REQUIRE(stops.hit().has_value());
    CHECK(stops.hit()->start == 1);
}

TEST_CASE("10 §16.3: a beginning that goes on differently holds nothing back") {
    StopStrings stops(std::vector<std::string>{"<END>"});
    stops.feed("<EN");
    stops.feed("x");
    CHECK_FALSE(stops.may_continue());
    CHECK_FALSE(stops.hit().has_value());
}

TEST_CASE("10 §16.3: a word that overlaps its own beginning is found") {
    CHECK(fed({"aab"}, "aaab").hit()->start == 1);
}

TEST_CASE("10 §16.3: empty words are never found") {
    const StopStrings stops = fed({"", "x"}, "abc");
    CHECK_FALSE(stops.hit().has_value());
    CHECK_FALSE(stops.may_continue());
}

TEST_CASE("10 §16.3: random words are found where a plain search finds them") {
    std::mt19937 random(1);
    const auto text_of = [&](std::size_t most) {
        std::string text(1 + random() % most, ' ');
        for (char& letter : text) {
            letter = static_cast<char>('a' + random() % 3);
        }
        return text;
    };
    for (std::int32_t round = 0; round < 2000; ++round) {
        std::vector<std::string> words;
        for (std::size_t i = 0; i < 1 + random() % 6; ++i) {
            words.push_back(text_of(5));
        }
        const std::string text = text_of(30);
        const auto found = fed(words, text).hit();
        const auto expected = first_hit(words, text);
        REQUIRE(found.has_value() == expected.has_value());
        if (found.has_value()) {
            CHECK(found->start == expected->start);
            CHECK(found->word == expected->word);
        }
    }
}

TEST_CASE("10 §16.3: a megabyte of words costs no time per token") {
    std::mt19937 random(1);
    std::vector<std::string> words;
    for (std::size_t total = 0; total < 1'000'000; total += words.back().size()) {
        std::string word(8, ' ');
        for (char& letter : word) {
            letter = static_cast<char>(1 + random() % 255);
        }
        words.push_back(word);
    }
    words.emplace_back(100'000, 'a');
    StopStrings stops(words);
    for (std::int32_t i = 0; i < 20'000; ++i) {
        stops.feed("aaaab");
    }
    CHECK_FALSE(stops.hit().has_value());
}

TEST_CASE("10 §16.2: text is complete up to the beginning of an unfinished character") {
    CHECK(complete_length("") == 0);
    CHECK(complete_length("abc") == 3);
    CHECK(complete_length("a\xC3") == 1);
    CHECK(complete_length("a\xC3\xA9") == 3);
    CHECK(complete_length("a\xE2\x82") == 1);
    CHECK(complete_length("a\xE2\x82\xAC") == 4);
    CHECK(complete_length("a\xF0\x9F\x98") == 1);
    CHECK(complete_length("a\xF0\x9F\x98\x80") == 5);
}

TEST_CASE("10 §16.2: bytes that can't become a character hold nothing back") {
    CHECK(complete_length("\x80\x80\x80\x80") == 4);
    CHECK(complete_length("a\xFF") == 2);
    CHECK(complete_length("a\xC0") == 2);
    CHECK(complete_length("\xC3\xA9\xA9") == 3);
}
