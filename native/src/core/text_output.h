// From the tokens of one request to the text that its client gets, and to the end of it (10 §16).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/indent_guard.h"
#include "core/result.h"
#include "core/sampling.h"
#include "core/stop_strings.h"
#include "core/task.h"

namespace paddock {

/// What may be sent after a token.
struct Emission {
    /// A partial is due: there is text or a record, or every token is to be timed.
    bool has_content = false;
    std::string text;
    std::vector<Token> tokens;
    std::vector<TokenRecord> records;
};

/// The next token of a request.
struct OutputToken {
    Token token = 0;
    /// Bytes that it shows.
    std::string_view piece;
    std::optional<TokenRecord> record;
    bool is_end = false;
    /// There is no room for another one (10 §16.7).
    bool context_full = false;
    /// It completes a repetition that ends the request (11 §19.8).
    bool completes_loop = false;
};

/// Each token costs as much as its own text, apart from what is sent at last.
class TextOutput {
  public:
    /// `limit`: tokens to generate, -1: any number; with 0 it has ended before it began.
    TextOutput(const GenerationParams& params, std::int32_t limit);

    /// What comes back is empty while text is held, and always when the request doesn't stream.
    Emission take(OutputToken next, Micros now_us, Micros generation_start_us);

    /// What is left to send once it has ended: everything, when the request doesn't stream. Once.
    Emission final_emission();

    bool ended() const { return stop_ != StopKind::none; }
    StopKind stop() const { return stop_; }
    const std::string& stop_detail() const { return stop_detail_; }
    const std::string& stopping_word() const { return stopping_word_; }
    /// Ended because the context was full.
    bool truncated() const;
    bool has_new_line() const { return has_new_line_; }
    std::int32_t n_decoded() const { return n_decoded_; }
    /// All text so far, held parts included; never more than the client gets once it has ended.
    const std::string& text() const { return text_; }
    /// Bytes of it that were sent, or would have been if the request streamed.
    std::size_t n_sent() const { return n_sent_; }

  private:
    struct PlacedRecord {
        TokenRecord record;
        /// Bytes of its token in the text.
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    void append(OutputToken& next);
    bool is_budget_used() const { return limit_ >= 0 && n_decoded_ >= limit_; }
    bool release_text(bool is_last);
    Emission emission_from(std::size_t sent_from);
    /// The first cause of an end stays; only the end of the text itself comes before it.
    void end(StopKind kind, const char* detail);
    void check_indentation();
    void check_time(Micros generation_us);
    std::vector<TokenRecord> take_records();

    bool streams_ = false;
    bool returns_tokens_ = false;
    bool times_tokens_ = false;
    bool checks_indentation_ = false;
    /// Milliseconds; 0: none.
    std::int64_t max_ms_ = 0;
    std::int32_t limit_ = -1;
    std::vector<std::string> words_;
    StopStrings stops_;
    IndentGuard indent_;

    std::string text_;
    std::size_t n_sent_ = 0;
    /// Not sent yet.
    std::vector<Token> tokens_;
    std::vector<PlacedRecord> records_;

    std::int32_t n_decoded_ = 0;
    StopKind stop_ = StopKind::none;
    std::string stop_detail_;
    std::string stopping_word_;
    bool has_new_line_ = false;
};

}  // namespace paddock
