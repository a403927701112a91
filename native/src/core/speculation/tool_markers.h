// Notices that a model writes a tool call as raw text while a lazy grammar waits for its trigger, and
// suspends drafting then (11 §20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paddock {

class ToolMarkerDetector {
  public:
    /// After each token that doesn't end the response. `text`: all of it so far, which only grows; `n_sent`:
    /// bytes of it that were sent before this token; `watches`: a lazy grammar has triggers;
    /// `grammar_active`: one of them was met. True: the token completes a marker, and drafting is suspended
    /// from now on.
    bool feed(std::string_view text, std::size_t n_sent, bool watches, bool grammar_active);

    /// Whether the slot must not draft, with whatever drafter.
    bool is_suppressing() const { return is_suppressing_; }

  private:
    void go_on(bool grammar_active);
    bool has_marker(std::string_view text, std::size_t start);
    bool is_in_fence(std::string_view text, std::size_t marker) const;
    void count_fences(std::string_view text, std::size_t end);

    bool is_suppressing_ = false;
    /// A grammar rules since: drafting stays suspended to the end.
    bool is_final_ = false;
    std::int32_t n_tokens_ = 0;
    std::int32_t n_expired_ = 0;
    /// Fences that begin before this byte, which none of them covers.
    std::size_t counted_to_ = 0;
    std::size_t n_fences_ = 0;
};

}  // namespace paddock
