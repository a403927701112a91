#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/text_output.h"

using namespace paddock;

namespace {

struct Step {
    bool is_end = false;
    bool context_full = false;
    bool completes_loop = false;
    std::optional<TokenRecord> record = std::nullopt;
    Micros generation_us = 1;
};

/// Gives the tokens 1, 2, 3, ... to an output.
class Client {
  public:
    explicit Client(const GenerationParams& params, std::int32_t limit = -1) : output(params, limit) {}

    Emission take(std::string_view piece, Step step = {}) {
        return output.take({.token = ++last_token_,
                            .piece = piece,
                            .record = std::move(step.record),
                            .is_end = step.is_end,
                            .context_full = step.context_full,
                            .completes_loop = step.completes_loop},
                           step.generation_us, 0);
    }
    Emission end() { return take("", {.is_end = true}); }

    TextOutput output;

  private:
    Token last_token_ = 0;
};

GenerationParams streaming(std::vector<std::string> stop = {}) {
    GenerationParams params;
    params.stream = true;
    params.stop = std::move(stop);
    return params;
}

GenerationParams whole(std::vector<std::string> stop = {}) {
    GenerationParams params;
    params.stop = std::move(stop);
    return params;
}

TokenRecord record_of(Token token) {
    TokenRecord record;
    record.chosen.token = token;
    return record;
}

}  // namespace

TEST_CASE("10 §16.5: each token of a stream is sent with its id") {
    Client client(streaming());
    const Emission emission = client.take("ab");
    CHECK(emission.has_content);
    CHECK(emission.text == "ab");
    CHECK(emission.tokens == std::vector<Token>{1});
}

TEST_CASE("10 §16.5: ids of tokens without text travel with the next ones") {
    Client client(streaming());
    CHECK_FALSE(client.take("").has_content);
    CHECK(client.take("a").tokens == std::vector<Token>{1, 2});
}

TEST_CASE("10 §16.5: with times for each token every token is sent") {
    GenerationParams params = streaming();
    params.timings_per_token = true;
    Client client(params);
    const Emission emission = client.take("");
    CHECK(emission.has_content);
    CHECK(emission.tokens == std::vector<Token>{1});
}

TEST_CASE("10 §16.14: without a stream everything comes at the end") {
    GenerationParams params = whole();
    params.return_tokens = true;
    Client client(params);
    CHECK_FALSE(client.take("ab").has_content);
    CHECK_FALSE(client.end().has_content);
    const Emission last = client.output.final_emission();
    CHECK(last.text == "ab");
    CHECK(last.tokens == std::vector<Token>{1, 2});
}

TEST_CASE("10 §16.1: without a stream ids are kept only when they were asked for") {
    Client client(whole());
    client.take("ab");
    client.end();
    CHECK(client.output.final_emission().tokens.empty());
}

TEST_CASE("10 §16.2: a character over three tokens is one partial with three records (vector 19)") {
    Client client(streaming());
    CHECK_FALSE(client.take("\xE2", {.record = record_of(1)}).has_content);
    CHECK_FALSE(client.take("\x82", {.record = record_of(2)}).has_content);
    const Emission emission = client.take("\xAC", {.record = record_of(3)});
    CHECK(emission.text == "\xE2\x82\xAC");
    CHECK(emission.records.size() == 3);
    CHECK(emission.tokens.size() == 3);
}

TEST_CASE("10 §16.2: half a character at the end is dropped") {
    Client client(streaming());
    client.take("a");
    CHECK_FALSE(client.take("\xE2\x82").has_content);
    client.end();
    CHECK(client.output.text() == "a");
    CHECK(client.output.final_emission().text.empty());
}

TEST_CASE("10 §16.2: a stop string before half a character is found at the end") {
    Client client(whole({"b"}), 2);
    client.take("a");
    client.take("b\xE2");
    CHECK(client.output.final_emission().text == "a");
    CHECK(client.output.stop() == StopKind::word);
}

TEST_CASE("10 §16.2: a stop string before half a character is found when the character is whole") {
    Client client(streaming({"b"}));
    CHECK_FALSE(client.take("ab\xE2").has_content);
    CHECK_FALSE(client.take("\x82").has_content);
    CHECK(client.take("\xAC").text == "a");
    CHECK(client.output.stopping_word() == "b");
}

TEST_CASE("10 §16.3: what stands before a stop string is sent (vector 11)") {
    Client client(streaming({"<END>"}));
    client.take("0123456789");
    const Emission emission = client.take("hello<END>");
    CHECK(emission.text == "hello");
    CHECK(client.output.stop() == StopKind::word);
    CHECK(client.output.stopping_word() == "<END>");
    CHECK(client.output.stop_detail().empty());
    CHECK(client.output.text() == "0123456789hello");
    CHECK(client.output.final_emission().text.empty());
}

TEST_CASE("10 §16.3: the earliest stop string cuts the text (vector 12)") {
    Client client(streaming({"END", "ND"}));
    client.take("xEN");
    CHECK(client.take("D").text == "x");
    CHECK(client.output.stopping_word() == "END");
}

TEST_CASE("10 §16.3: text that may become a stop string waits") {
    Client client(streaming({"<END>"}));
    CHECK_FALSE(client.take("a<EN").has_content);
    CHECK(client.take("x").text == "a<ENx");
}

TEST_CASE("10 §16.3: the end of the text releases what waits (vector 13)") {
    Client client(streaming({"<END>"}));
    client.take("a<EN");
    CHECK(client.end().text == "a<EN");
    CHECK(client.output.stop() == StopKind::eos);
}

TEST_CASE("10 §16.3: a used-up budget releases what waits, too") {
    Client client(streaming({"<END>"}), 1);
    CHECK(client.take("a<EN").text == "a<EN");
    CHECK(client.output.stop_detail() == "token_limit");
}

TEST_CASE("10 §16.3: records of held text are sent without it") {
    Client client(streaming({"<END>"}));
    const Emission emission = client.take("<E", {.record = record_of(1)});
    CHECK(emission.has_content);
    CHECK(emission.text.empty());
    CHECK(emission.records.size() == 1);
}

TEST_CASE("10 §16.7: a full context ends the request") {
    Client client(whole());
    client.take("a", {.context_full = true});
    CHECK(client.output.stop() == StopKind::limit);
    CHECK(client.output.stop_detail() == "context_full");
    CHECK(client.output.truncated());
}

TEST_CASE("10 §16.8: a budget of tokens ends the request with the last of them (vector 16)") {
    Client client(whole(), 3);
    client.take("a");
    client.take("b");
    CHECK_FALSE(client.output.ended());
    client.take("c");
    CHECK(client.output.stop() == StopKind::limit);
    CHECK(client.output.stop_detail() == "token_limit");
    CHECK_FALSE(client.output.truncated());
}

TEST_CASE("10 §16.8: a budget of 0 has ended before the first token (vector 16)") {
    Client client(whole(), 0);
    CHECK(client.output.ended());
    CHECK(client.output.stop_detail() == "token_limit");
    CHECK(client.output.n_decoded() == 0);
}

TEST_CASE("10 §16.8: without a budget nothing ends by count (vector 16)") {
    Client client(whole(), -1);
    for (std::int32_t i = 0; i < 1000; ++i) {
        client.take("a");
    }
    CHECK_FALSE(client.output.ended());
    CHECK(client.output.n_decoded() == 1000);
}

TEST_CASE("10 §16.10: a line that is indented too little ends the text before it") {
    GenerationParams params = whole();
    params.n_indent = 4;
    Client client(params);
    for (const char* piece : {"first\n", "    second", "\n", "  ", "third"}) {
        client.take(piece);
    }
    CHECK(client.output.stop_detail() == "indent_limit");
    CHECK(client.output.final_emission().text == "first\n    second\n  ");
}

TEST_CASE("10 §16.10: the first line may begin as it likes") {
    GenerationParams params = whole();
    params.n_indent = 4;
    Client client(params);
    client.take("a");
    client.take("b");
    CHECK_FALSE(client.output.ended());
}

TEST_CASE("10 §16.10: blanks of a line count over several tokens") {
    GenerationParams params = whole();
    params.n_indent = 4;
    Client client(params);
    for (const char* piece : {"a\n", "  ", "\t", " ", "b"}) {
        client.take(piece);
    }
    CHECK_FALSE(client.output.ended());
}

TEST_CASE("10 §16.11: text with a newline is remembered") {
    Client client(whole());
    client.take("a");
    CHECK_FALSE(client.output.has_new_line());
    client.take("\n");
    CHECK(client.output.has_new_line());
}

TEST_CASE("10 §16.11: the time limit ends the text at a newline") {
    GenerationParams params = whole();
    params.t_max_predict_ms = 10;
    Client client(params);
    client.take("a\n", {.generation_us = 10'000});
    CHECK_FALSE(client.output.ended());
    client.take("b", {.generation_us = 20'000});
    CHECK_FALSE(client.output.ended());
    client.take("\n", {.generation_us = 20'000});
    CHECK(client.output.stop_detail() == "time_limit");
}

TEST_CASE("10 §16.12: the end of the text overrides every other end") {
    Client client(whole({"b"}), 1);
    client.take("ab", {.is_end = true, .context_full = true});
    CHECK(client.output.stop() == StopKind::eos);
    CHECK(client.output.stop_detail().empty());
    CHECK(client.output.stopping_word().empty());
    CHECK_FALSE(client.output.truncated());
    CHECK(client.output.text() == "a");
}

TEST_CASE("10 §16.13: a stop string counts for more than a budget used up by the same token") {
    Client client(whole({"b"}), 1);
    client.take("ab");
    CHECK(client.output.stop() == StopKind::word);
    CHECK(client.output.stop_detail().empty());
}

TEST_CASE("10 §16.15: records of text that a stop string took back are dropped") {
    Client client(whole({"<END>"}));
    client.take("a", {.record = record_of(1)});
    client.take("b<", {.record = record_of(2)});
    client.take("EN", {.record = record_of(3)});
    client.take("D>", {.record = record_of(4)});
    const Emission last = client.output.final_emission();
    CHECK(last.text == "ab");
    REQUIRE(last.records.size() == 2);
    CHECK(last.records[1].chosen.token == 2);
}

TEST_CASE("10 §16.5: what a stream got is what came without one") {
    const std::vector<std::string> pieces{"a<", "EN", "\xE2", "\x82\xAC", "<E", "\n", "<END", "x<EN", "\xC3"};
    Client stream(streaming({"<END>"}), 9);
    Client plain(whole({"<END>"}), 9);
    std::string streamed;
    for (const std::string& piece : pieces) {
        streamed += stream.take(piece).text;
        plain.take(piece);
    }
    streamed += stream.output.final_emission().text;
    CHECK(streamed == "a<EN\xE2\x82\xAC<E\n<ENDx<EN");
    CHECK(plain.output.final_emission().text == streamed);
}

TEST_CASE("10 §16: text that is held for long costs no more per token either") {
    Client client(streaming({"ab"}));
    for (std::int32_t i = 0; i < 300'000; ++i) {
        client.take("aaaaa");
    }
    CHECK(client.take("c").text.size() == 1'500'001);
}

TEST_CASE("10 §16: long texts cost no more per token than short ones") {
    GenerationParams params = streaming({"<END>"});
    params.n_indent = 1;
    Client client(params);
    client.take("a\n");
    std::size_t n_sent = 0;
    for (std::int32_t i = 0; i < 300'000; ++i) {
        n_sent += client.take("     ").text.size();
    }
    CHECK(n_sent == 1'500'000);
}

TEST_CASE("11 §19.8: a loop ends the text behind its token") {
    Client client(whole({"abc"}));
    client.take("x");
    client.take("ab\xE2", {.completes_loop = true});
    CHECK(client.output.stop() == StopKind::limit);
    CHECK(client.output.stop_detail() == "loop_guard");
    CHECK_FALSE(client.output.truncated());
    CHECK(client.output.final_emission().text == "xab");
}

TEST_CASE("10 §16.13: the end of the text comes before a loop, and so do a stop string and the budget") {
    Client ending(whole());
    ending.take("", {.is_end = true, .completes_loop = true});
    CHECK(ending.output.stop() == StopKind::eos);
    Client worded(whole({"ab"}));
    worded.take("ab", {.completes_loop = true});
    CHECK(worded.output.stop() == StopKind::word);
    Client limited(whole(), 1);
    limited.take("ab", {.completes_loop = true});
    CHECK(limited.output.stop_detail() == "token_limit");
}
