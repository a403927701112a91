#include <doctest/doctest.h>

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/reasoning_automaton.h"

using namespace paddock;

namespace {

constexpr Token word = 50;
constexpr std::string_view ascii = "a";
/// The bytes of one character of four, apart.
constexpr std::string_view first_of_four = "\xF0";
constexpr std::string_view next_of_four = "\x9F";

/// Starts with 1 2, ends with 3 4 or with 5; the message 8 9 is forced before 3 4.
ReasoningAutomaton automaton(std::int32_t budget, bool starts_open = false) {
    return {{.start = {1, 2}, .ends = {{3, 4}, {5}}, .forced = {8, 9, 3, 4}}, budget, starts_open};
}

void accept_all(ReasoningAutomaton& reasoning, std::initializer_list<Token> tokens) {
    for (const Token token : tokens) reasoning.accept(token, ascii);
}

/// Takes what is forced until nothing is.
std::vector<Token> take_forced(ReasoningAutomaton& reasoning) {
    std::vector<Token> tokens;
    while (const std::optional<Token> token = reasoning.forced_token()) {
        tokens.push_back(*token);
        reasoning.accept(*token, ascii);
    }
    return tokens;
}

}  // namespace

TEST_CASE("an automaton is idle before a start") { CHECK(automaton(-1).state() == ReasoningState::idle); }

TEST_CASE("half a start sequence opens nothing") {
    auto reasoning = automaton(-1);
    accept_all(reasoning, {1, word, 2});
    CHECK(reasoning.state() == ReasoningState::idle);
}

TEST_CASE("a whole start sequence opens reasoning") {
    auto reasoning = automaton(-1);
    accept_all(reasoning, {word, 1, 2});
    CHECK(reasoning.state() == ReasoningState::counting);
}

TEST_CASE("a start sequence whose first token came twice opens reasoning") {
    auto reasoning = automaton(-1);
    accept_all(reasoning, {1, 1, 2});
    CHECK(reasoning.state() == ReasoningState::counting);
}

TEST_CASE("a prompt that ended in reasoning counts from the first token") {
    CHECK(automaton(-1, true).state() == ReasoningState::counting);
}

TEST_CASE("every end sequence ends reasoning") {
    for (const auto& end : {std::vector<Token>{3, 4}, std::vector<Token>{5}}) {
        auto reasoning = automaton(-1, true);
        for (const Token token : end) reasoning.accept(token, ascii);
        CHECK(reasoning.state() == ReasoningState::done);
    }
}

TEST_CASE("a budget of -1 never expires") {
    auto reasoning = automaton(-1, true);
    for (int i = 0; i < 10'000; ++i) reasoning.accept(word, ascii);
    CHECK(reasoning.state() == ReasoningState::counting);
}

TEST_CASE("a budget of 0 forces the end at once behind a start") {
    auto reasoning = automaton(0);
    accept_all(reasoning, {1, 2});
    CHECK(reasoning.forced_token() == 8);
}

TEST_CASE("a budget of 0 forces the end of open reasoning with the first token") {
    CHECK(automaton(0, true).forced_token() == 8);
}

TEST_CASE("a budget is as many tokens of reasoning") {
    auto reasoning = automaton(3, true);
    accept_all(reasoning, {word, word});
    CHECK(reasoning.state() == ReasoningState::counting);
    accept_all(reasoning, {word});
    CHECK(reasoning.state() == ReasoningState::forcing);
}

TEST_CASE("the message and the first end sequence are forced in order") {
    auto reasoning = automaton(1, true);
    accept_all(reasoning, {word});
    CHECK(take_forced(reasoning) == std::vector<Token>{8, 9, 3, 4});
    CHECK(reasoning.state() == ReasoningState::done);
}

TEST_CASE("an end sequence that the last token of the budget completes needs no forcing") {
    auto reasoning = automaton(2, true);
    accept_all(reasoning, {3, 4});
    CHECK(reasoning.state() == ReasoningState::done);
}

TEST_CASE("a used up budget waits for a character to end") {
    auto reasoning = automaton(1, true);
    reasoning.accept(word, first_of_four);
    CHECK(reasoning.state() == ReasoningState::waiting_utf8);
    CHECK_FALSE(reasoning.forced_token().has_value());
    reasoning.accept(word, next_of_four);
    reasoning.accept(word, next_of_four);
    CHECK(reasoning.state() == ReasoningState::waiting_utf8);
    reasoning.accept(word, next_of_four);
    CHECK(reasoning.state() == ReasoningState::forcing);
}

TEST_CASE("an end sequence while a character is awaited ends reasoning") {
    auto reasoning = automaton(1, true);
    reasoning.accept(word, first_of_four);
    reasoning.accept(5, ascii);
    CHECK(reasoning.state() == ReasoningState::done);
}

TEST_CASE("a stream of broken characters doesn't put the end off for ever") {
    auto reasoning = automaton(1, true);
    for (int i = 0; i < 4; ++i) reasoning.accept(word, first_of_four);
    CHECK(reasoning.state() == ReasoningState::forcing);
}

TEST_CASE("a new start re-arms the budget") {
    auto reasoning = automaton(2, true);
    accept_all(reasoning, {5, 1, 2, word});
    CHECK(reasoning.state() == ReasoningState::counting);
    accept_all(reasoning, {word});
    CHECK(reasoning.state() == ReasoningState::forcing);
}

TEST_CASE("force_end forces from the next token on") {
    auto reasoning = automaton(-1, true);
    CHECK(reasoning.force_end());
    CHECK(take_forced(reasoning) == std::vector<Token>{8, 9, 3, 4});
}

TEST_CASE("force_end is refused in every state but counting") {
    auto idle = automaton(-1);
    CHECK_FALSE(idle.force_end());
    auto waiting = automaton(1, true);
    waiting.accept(word, first_of_four);
    CHECK_FALSE(waiting.force_end());
    auto forcing = automaton(0, true);
    CHECK_FALSE(forcing.force_end());
    auto done = automaton(-1, true);
    accept_all(done, {5});
    CHECK_FALSE(done.force_end());
}

TEST_CASE("without an end sequence nothing can be forced") {
    ReasoningAutomaton reasoning({.start = {1}, .ends = {}, .forced = {}}, 1, true);
    accept_all(reasoning, {word, word});
    CHECK(reasoning.state() == ReasoningState::counting);
    CHECK_FALSE(reasoning.force_end());
    CHECK(reasoning.forced_count() == 0);
}

TEST_CASE("forced_count is the length of message and end sequence") {
    CHECK(automaton(-1).forced_count() == 4);
}

TEST_CASE("the opening token belongs to reasoning and the closing one doesn't") {
    auto reasoning = automaton(-1);
    accept_all(reasoning, {1});
    CHECK_FALSE(reasoning.in_reasoning());
    accept_all(reasoning, {2});
    CHECK(reasoning.in_reasoning());
    accept_all(reasoning, {5});
    CHECK_FALSE(reasoning.in_reasoning());
}

TEST_CASE("the token that uses the budget up belongs to reasoning") {
    auto reasoning = automaton(1, true);
    accept_all(reasoning, {word});
    CHECK(reasoning.in_reasoning());
    CHECK_FALSE(reasoning.last_was_forced());
}

TEST_CASE("a forced token is reported as forced and belongs to no reasoning") {
    auto reasoning = automaton(0, true);
    accept_all(reasoning, {8});
    CHECK(reasoning.last_was_forced());
    CHECK_FALSE(reasoning.in_reasoning());
    take_forced(reasoning);
    accept_all(reasoning, {word});
    CHECK_FALSE(reasoning.last_was_forced());
}

TEST_CASE("a reset goes back to the state before any token") {
    auto reasoning = automaton(2, true);
    accept_all(reasoning, {word, word, 8});
    reasoning.reset();
    accept_all(reasoning, {word});
    CHECK(reasoning.state() == ReasoningState::counting);
    accept_all(reasoning, {word});
    CHECK(reasoning.state() == ReasoningState::forcing);
}

TEST_CASE("a matcher finds a sequence whose beginning repeats within it") {
    SequenceMatcher matcher({1, 1, 2});
    CHECK_FALSE(matcher.advance(1));
    CHECK_FALSE(matcher.advance(1));
    CHECK_FALSE(matcher.advance(1));
    CHECK(matcher.advance(2));
}

TEST_CASE("a matcher of an empty sequence finds nothing") { CHECK_FALSE(SequenceMatcher({}).advance(1)); }

TEST_CASE("a tail knows the bytes that its last character lacks") {
    Utf8Tail tail;
    tail.append("a\xC3");
    CHECK_FALSE(tail.is_complete());
    tail.append("\xA4");
    CHECK(tail.is_complete());
    tail.append("\x80\x80");
    CHECK(tail.is_complete());
}
