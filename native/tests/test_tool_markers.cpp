#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/speculation/tool_markers.h"

using namespace paddock;

namespace {

const std::string marker = "<tool_call";
const std::string fence = "```";

/// Whether drafting stops with the last token of a text of which nothing was sent.
bool stops(const std::string& text) { return ToolMarkerDetector().feed(text, 0, true, false); }

/// A detector that was fed a marker, and then tokens without text.
struct Suspended {
    Suspended() { REQUIRE(detector.feed(marker, 0, true, false)); }

    void feed(std::int32_t n_tokens, bool grammar_active = false) {
        for (std::int32_t i = 0; i < n_tokens; ++i) {
            detector.feed(marker, 0, true, grammar_active);
        }
    }

    ToolMarkerDetector detector;
};

}  // namespace

TEST_CASE("11 §20.3, vector 1: a marker within a word is none") { CHECK_FALSE(stops("a<tool_call")); }

TEST_CASE("11 §20.3, vector 1: a marker behind a blank is one") { CHECK(stops("> <tool_call")); }

TEST_CASE("11 §20.3, vector 1: code in an open fence doesn't count") {
    CHECK_FALSE(stops(fence + "\n" + marker));
}

TEST_CASE("11 §20.3, vector 1: a closed fence is over") {
    CHECK(stops(fence + "\ncode\n" + fence + "\n" + marker));
}

TEST_CASE("11 §20.3, vector 1: a marker 300 bytes before the end was seen long ago") {
    CHECK_FALSE(stops(marker + std::string(300 - marker.size(), 'x')));
}

TEST_CASE("11 §20.3: every marker is known") {
    for (const std::string each :
         {"<tool_call", "</tool_call", "<function=", "</function>", "<parameter=", "</parameter>"}) {
        CAPTURE(each);
        CHECK(stops(each));
        CHECK_FALSE(stops(each.substr(0, each.size() - 1)));
    }
}

TEST_CASE("11 §20.3: a marker stands at the start, or behind white space or a bracket") {
    for (const std::string before : {"", "\n", "\r", "\t", " ", ">"}) {
        CAPTURE(before);
        CHECK(stops("text" + before + marker) == !before.empty());
    }
    CHECK(stops(marker));
}

TEST_CASE("11 §20.3: a marker behind one that doesn't count is found") {
    CHECK(stops("a<tool_call <function="));
}

TEST_CASE("11 §20.2: what was sent is looked at again for 64 bytes") {
    const std::string rest(60, 'x');
    CHECK(ToolMarkerDetector().feed(marker + rest, 64, true, false));
    CHECK_FALSE(ToolMarkerDetector().feed(marker + rest, 65, true, false));
}

TEST_CASE("11 §20.2: text that ends within a character waits") {
    ToolMarkerDetector detector;
    CHECK_FALSE(detector.feed(marker + "\xE2", 0, true, false));
    CHECK(detector.feed(marker + "\xE2\x82\xAC", 0, true, false));
}

TEST_CASE("11 §20.2: without a lazy grammar nothing is looked for") {
    CHECK_FALSE(ToolMarkerDetector().feed(marker, 0, false, false));
}

TEST_CASE("11 §20.3: fences are counted from the start of a long text") {
    ToolMarkerDetector detector;
    std::string text = fence + "\n";
    bool is_found = false;
    while (text.size() < 3000) {
        text += "line of code\n";
        is_found = is_found || detector.feed(text, text.size() - 1, true, false);
    }
    text += marker;
    CHECK_FALSE(detector.feed(text, text.size() - 1, true, false));
    text += "\n" + fence + "\n" + marker;
    CHECK(detector.feed(text, text.size() - 1, true, false));
    CHECK_FALSE(is_found);
}

TEST_CASE("11 §20.3: runs of backticks are counted in threes wherever the text is split") {
    for (const std::size_t n_backticks : {3U, 4U, 5U, 6U, 9U}) {
        for (std::size_t n_before = 60; n_before < 70; ++n_before) {
            CAPTURE(n_backticks);
            CAPTURE(n_before);
            const std::string text =
                std::string(n_before, 'x') + std::string(n_backticks, '`') + std::string(60, 'x') + "\n";
            ToolMarkerDetector detector;
            for (std::size_t end = 1; end <= text.size(); ++end) {
                detector.feed(text.substr(0, end), end - 1, true, false);
            }
            const bool is_open = n_backticks / 3 % 2 == 1;
            CHECK(detector.feed(text + marker, text.size(), true, false) == !is_open);
        }
    }
}

TEST_CASE("11 §20.4: a marker suspends drafting once") {
    Suspended suspended;
    CHECK(suspended.detector.is_suppressing());
    CHECK_FALSE(suspended.detector.feed(marker + " " + marker, 0, true, false));
}

TEST_CASE("11 §20.5: after 128 further tokens drafting goes on") {
    Suspended suspended;
    suspended.feed(127);
    CHECK(suspended.detector.is_suppressing());
    suspended.feed(1);
    CHECK_FALSE(suspended.detector.is_suppressing());
}

TEST_CASE("11 §20.5: once the grammar rules drafting stays suspended") {
    Suspended suspended;
    suspended.feed(1, true);
    suspended.feed(1000);
    CHECK(suspended.detector.is_suppressing());
}

TEST_CASE("11 §20.5: a grammar that ruled at the marker counts, too") {
    ToolMarkerDetector detector;
    REQUIRE(detector.feed(marker, 0, true, true));
    for (std::int32_t i = 0; i < 200; ++i) {
        detector.feed(marker, 0, true, false);
    }
    CHECK(detector.is_suppressing());
}

TEST_CASE("11 §20.5: the fourth marker of a response suspends nothing") {
    Suspended suspended;
    for (std::int32_t round = 0; round < 2; ++round) {
        suspended.feed(128);
        REQUIRE_FALSE(suspended.detector.is_suppressing());
        REQUIRE(suspended.detector.feed(marker, 0, true, false));
    }
    suspended.feed(128);
    CHECK_FALSE(suspended.detector.feed(marker, 0, true, false));
}
