#include "core/text_output.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"

namespace paddock {

namespace {

constexpr const char* detail_context_full = "context_full";
constexpr const char* detail_token_limit = "token_limit";
constexpr const char* detail_loop_guard = "loop_guard";
constexpr const char* detail_indent_limit = "indent_limit";
constexpr const char* detail_time_limit = "time_limit";

}  // namespace

TextOutput::TextOutput(const GenerationParams& params, std::int32_t limit)
    : streams_(params.stream),
      returns_tokens_(params.return_tokens || params.stream),
      times_tokens_(params.timings_per_token),
      checks_indentation_(params.n_indent > 0),
      max_ms_(params.t_max_predict_ms),
      limit_(limit),
      words_(params.stop),
      stops_(words_),
      indent_(params.n_indent) {
    if (is_budget_used()) {
        end(StopKind::limit, detail_token_limit);
    }
}

Emission TextOutput::take(OutputToken next, Micros now_us, Micros generation_start_us) {
    ++n_decoded_;
    append(next);
    const bool is_last = next.is_end || next.context_full || next.completes_loop || is_budget_used();
    const bool had_new_line = has_new_line_;
    const std::size_t sent_from = n_sent_;
    Emission emission;
    if (release_text(is_last)) {
        emission = emission_from(sent_from);
    }
    const auto sent = std::string_view(text_).substr(sent_from, n_sent_ - sent_from);
    const bool sent_new_line = sent.find('\n') != std::string_view::npos;
    has_new_line_ = has_new_line_ || sent_new_line;
    if (next.context_full) {
        end(StopKind::limit, detail_context_full);
    }
    if (is_budget_used()) {
        end(StopKind::limit, detail_token_limit);
    }
    if (next.completes_loop) {
        end(StopKind::limit, detail_loop_guard);
    }
    if (had_new_line) {
        check_indentation();
    }
    if (sent_new_line) {
        check_time(now_us - generation_start_us);
    }
    if (next.is_end) {
        stop_ = StopKind::eos;
        stop_detail_.clear();
        stopping_word_.clear();
    }
    return emission;
}

Emission TextOutput::final_emission() {
    Emission emission;
    emission.text = text_.substr(streams_ ? std::min(n_sent_, text_.size()) : 0);
    n_sent_ = text_.size();
    emission.tokens = std::exchange(tokens_, {});
    if (!streams_ && stop_ == StopKind::word) {
        // Their text was taken back; a count would be wrong, since the word may be spelt with other tokens.
        std::erase_if(records_, [&](const PlacedRecord& placed) {
            return placed.begin >= text_.size() && placed.end > text_.size();
        });
    }
    emission.records = take_records();
    emission.has_content = !emission.text.empty() || !emission.records.empty();
    return emission;
}

void TextOutput::append(OutputToken& next) {
    const std::size_t begin = text_.size();
    text_.append(next.piece);
    stops_.feed(next.piece);
    if (returns_tokens_) {
        tokens_.push_back(next.token);
    }
    if (next.record.has_value()) {
        records_.push_back({.record = std::move(*next.record), .begin = begin, .end = text_.size()});
    }
}

/// Counts text as sent as far as nothing can take it back any more. False: a character is incomplete, and
/// everything waits for the rest of it. Nothing follows the last token: what is held goes, and half a
/// character never becomes a whole one.
bool TextOutput::release_text(bool is_last) {
    const std::size_t n_complete = complete_length(text_);
    if (is_last) {
        text_.resize(n_complete);
    } else if (n_complete < text_.size()) {
        return false;
    }
    if (const auto& hit = stops_.hit()) {
        text_.resize(hit->start);
        stopping_word_ = words_[hit->word];
        end(StopKind::word, "");
    }
    if (is_last || ended() || !stops_.may_continue()) {
        n_sent_ = text_.size();
    }
    return true;
}

/// A partial with everything that has become sendable since `sent_from`; empty when none is due (10 §16.5).
Emission TextOutput::emission_from(std::size_t sent_from) {
    Emission emission;
    const bool is_due = n_sent_ > sent_from || !records_.empty() || times_tokens_;
    if (streams_ && is_due) {
        emission.has_content = true;
        emission.text = text_.substr(sent_from, n_sent_ - sent_from);
        emission.tokens = std::exchange(tokens_, {});
        emission.records = take_records();
    }
    return emission;
}

std::vector<TokenRecord> TextOutput::take_records() {
    std::vector<TokenRecord> records;
    records.reserve(records_.size());
    for (PlacedRecord& placed : std::exchange(records_, {})) {
        records.push_back(std::move(placed.record));
    }
    return records;
}

bool TextOutput::truncated() const { return stop_detail_ == detail_context_full; }

void TextOutput::end(StopKind kind, const char* detail) {
    if (!ended()) {
        stop_ = kind;
        stop_detail_ = detail;
    }
}

void TextOutput::check_indentation() {
    if (!checks_indentation_ || ended()) {
        return;
    }
    if (const auto cut = indent_.check(text_)) {
        text_.resize(*cut);
        end(StopKind::limit, detail_indent_limit);
    }
}

void TextOutput::check_time(Micros generation_us) {
    if (max_ms_ > 0 && to_ms(generation_us) > static_cast<double>(max_ms_)) {
        end(StopKind::limit, detail_time_limit);
    }
}

}  // namespace paddock
