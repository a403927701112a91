#include "core/reasoning_automaton.h"

#include <utility>

namespace paddock {
namespace {

/// Tokens that a character may take to end: it has at most three bytes behind its first. A stream of broken
/// bytes must not put the end off for longer.
constexpr int max_waited_tokens = 3;

/// For each prefix of `sequence`, the length of its longest proper prefix that is a suffix too.
std::vector<std::size_t> borders_of(const std::vector<Token>& sequence) {
    std::vector<std::size_t> borders(sequence.size(), 0);
    for (std::size_t i = 1; i < sequence.size(); ++i) {
        std::size_t border = borders[i - 1];
        while (border > 0 && sequence[i] != sequence[border]) border = borders[border - 1];
        borders[i] = border + static_cast<std::size_t>(sequence[i] == sequence[border]);
    }
    return borders;
}

/// Bytes that follow a first byte; 0 for one that stands alone or starts nothing.
int bytes_after(unsigned char first) {
    if (first >= 0xF0 && first < 0xF8) return 3;
    if (first >= 0xE0 && first < 0xF0) return 2;
    if (first >= 0xC0 && first < 0xE0) return 1;
    return 0;
}

}  // namespace

SequenceMatcher::SequenceMatcher(std::vector<Token> sequence)
    : sequence_(std::move(sequence)), borders_(borders_of(sequence_)) {}

bool SequenceMatcher::advance(Token token) {
    if (sequence_.empty()) return false;
    while (n_matched_ > 0 && sequence_[n_matched_] != token) n_matched_ = borders_[n_matched_ - 1];
    if (sequence_[n_matched_] == token) ++n_matched_;
    if (n_matched_ < sequence_.size()) return false;
    n_matched_ = 0;
    return true;
}

void Utf8Tail::append(std::string_view bytes) {
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        const bool continues = (value & 0xC0U) == 0x80U;
        if (!continues) {
            n_missing_ = bytes_after(value);
        } else if (n_missing_ > 0) {
            --n_missing_;
        }
    }
}

ReasoningAutomaton::ReasoningAutomaton(ReasoningTags tags, std::int32_t budget, bool starts_open)
    : start_(std::move(tags.start)),
      forced_(std::move(tags.forced)),
      budget_(budget),
      starts_open_(starts_open) {
    ends_.reserve(tags.ends.size());
    for (std::vector<Token>& end : tags.ends) ends_.emplace_back(std::move(end));
    reset();
}

void ReasoningAutomaton::reset() {
    state_ = ReasoningState::idle;
    start_.reset();
    tail_.reset();
    last_in_reasoning_ = false;
    last_was_forced_ = false;
    if (starts_open_) open();
}

void ReasoningAutomaton::accept(Token token, std::string_view piece) {
    tail_.append(piece);
    last_was_forced_ = state_ == ReasoningState::forcing;
    switch (state_) {
        case ReasoningState::idle:
        case ReasoningState::done: watch_for_start(token); break;
        case ReasoningState::counting: count(token); break;
        case ReasoningState::waiting_utf8:
            ++n_waited_;
            if (completes_an_end(token)) {
                state_ = ReasoningState::done;
            } else {
                wait_for_character();
            }
            break;
        case ReasoningState::forcing:
            if (++n_forced_ == forced_.size()) state_ = ReasoningState::done;
            break;
    }
    // A token that uses the budget up, or that opens reasoning without one, belongs to it although forcing
    // follows.
    last_in_reasoning_ = is_active() && !last_was_forced_;
}

std::optional<Token> ReasoningAutomaton::forced_token() const {
    if (state_ != ReasoningState::forcing) return std::nullopt;
    return forced_[n_forced_];
}

bool ReasoningAutomaton::force_end() {
    if (state_ != ReasoningState::counting || forced_.empty()) return false;
    force();
    return true;
}

void ReasoningAutomaton::open() {
    for (SequenceMatcher& end : ends_) end.reset();
    state_ = ReasoningState::counting;
    n_left_ = budget_;
    n_waited_ = 0;
    if (budget_ == 0 && !forced_.empty()) force();
}

void ReasoningAutomaton::count(Token token) {
    if (completes_an_end(token)) {
        state_ = ReasoningState::done;
        return;
    }
    // Without an end to force a budget can't be kept; the reasoning then ends by itself.
    if (budget_ < 0 || forced_.empty()) return;
    if (--n_left_ <= 0) wait_for_character();
}

void ReasoningAutomaton::wait_for_character() {
    if (tail_.is_complete() || n_waited_ >= max_waited_tokens) {
        force();
    } else {
        state_ = ReasoningState::waiting_utf8;
    }
}

void ReasoningAutomaton::force() {
    state_ = ReasoningState::forcing;
    n_forced_ = 0;
    start_.reset();
}

bool ReasoningAutomaton::completes_an_end(Token token) {
    bool is_complete = false;
    for (SequenceMatcher& end : ends_) is_complete = end.advance(token) || is_complete;
    return is_complete;
}

void ReasoningAutomaton::watch_for_start(Token token) {
    if (start_.advance(token)) open();
}

}  // namespace paddock
