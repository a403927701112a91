// Follows a generated text into its reasoning and out again, and ends the reasoning when its budget is used
// up (10 §23.3). Knows tokens and bytes only; the sampler owns one and asks it which token is forced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace paddock {

enum class ReasoningState {
    idle,          // before reasoning: watches for a start
    counting,      // inside
    waiting_utf8,  // the budget is used up, a character isn't complete
    forcing,       // the end is forced, token by token
    done,          // behind reasoning: watches for another start
};

/// A sequence of tokens found in a stream, also when its beginning repeats within it.
class SequenceMatcher {
  public:
    explicit SequenceMatcher(std::vector<Token> sequence);

    /// Whether `token` completes the sequence. An empty sequence never is.
    bool advance(Token token);
    void reset() { n_matched_ = 0; }

  private:
    std::vector<Token> sequence_;
    /// For each prefix, the length of its longest border.
    std::vector<std::size_t> borders_;
    std::size_t n_matched_ = 0;
};

/// How many bytes the last character of a byte stream still lacks.
class Utf8Tail {
  public:
    void append(std::string_view bytes);
    void reset() { n_missing_ = 0; }
    bool is_complete() const { return n_missing_ == 0; }

  private:
    int n_missing_ = 0;
};

struct ReasoningTags {
    std::vector<Token> start;
    std::vector<std::vector<Token>> ends;
    /// What is forced: the message and the end sequence; empty: nothing can be forced.
    std::vector<Token> forced;
};

class ReasoningAutomaton {
  public:
    /// `budget` in tokens: -1 never expires, 0 forces the end at once. `starts_open`: the prompt ended in
    /// reasoning.
    ReasoningAutomaton(ReasoningTags tags, std::int32_t budget, bool starts_open);

    /// Takes a generated token and its bytes.
    void accept(Token token, std::string_view piece);
    void reset();

    /// The only token that may come next, while the end is forced.
    std::optional<Token> forced_token() const;
    /// Forces the end from the next token on; false unless it is counting and there is something to force.
    bool force_end();

    ReasoningState state() const { return state_; }
    /// Whether the next token is a matter of the reasoning: inside it, or ending it by force.
    bool is_active() const { return state_ != ReasoningState::idle && state_ != ReasoningState::done; }
    /// Whether the token accepted last belongs to the reasoning. The tokens of the start do with the last of
    /// them, a forced token and the one that completes an end don't.
    bool in_reasoning() const { return last_in_reasoning_; }
    bool last_was_forced() const { return last_was_forced_; }
    /// Tokens that an early end costs; 0: none is known.
    std::size_t forced_count() const { return forced_.size(); }

  private:
    void open();
    void count(Token token);
    void wait_for_character();
    void force();
    bool completes_an_end(Token token);
    void watch_for_start(Token token);

    SequenceMatcher start_;
    std::vector<SequenceMatcher> ends_;
    std::vector<Token> forced_;
    std::int32_t budget_;
    bool starts_open_;

    ReasoningState state_ = ReasoningState::idle;
    Utf8Tail tail_;
    std::int32_t n_left_ = 0;
    int n_waited_ = 0;
    std::size_t n_forced_ = 0;
    bool last_in_reasoning_ = false;
    bool last_was_forced_ = false;
};

}  // namespace paddock
