// Texts of others in lines of a log.
#include <doctest/doctest.h>

#include <string>

#include "core/printable.h"

using namespace paddock;

TEST_CASE("text without control characters stays as it is") {
    CHECK(printable("plain \\n text, \xC3\xA4 \xE2\x82\xAC \xFF\xC2") ==
          "plain \\n text, \xC3\xA4 \xE2\x82\xAC \xFF\xC2");
}

TEST_CASE("a line end can't begin a line") { CHECK(printable("a\nb\r\n") == "a\\nb\\r\\n"); }

TEST_CASE("sequences for terminals are shown, not sent") {
    CHECK(printable("\x1b[31mred\x7f\t") == "\\x1b[31mred\\x7f\\t");
}

TEST_CASE("a zero byte does not end the line") { CHECK(printable(std::string("a\0b", 3)) == "a\\x00b"); }

TEST_CASE("control characters of two bytes are shown, their neighbours stay") {
    CHECK(printable("\xC2\x9B"
                    "1m") == "\\xc2\\x9b1m");
    CHECK(printable("\xC2\xA0") == "\xC2\xA0");
}
