#include "core/speculation/vocabulary_check.h"

#include <algorithm>
#include <cstdlib>

namespace paddock {
namespace {

/// Sizes of one family differ by padding.
constexpr std::int32_t max_size_difference = 128;
/// The first few are control tokens, which models of one family spell differently.
constexpr Token first_compared = 5;

std::string compared(const std::string& target, const std::string& drafter) {
    return "the target has " + target + ", the drafter " + drafter;
}

/// A token that is put at an end of prompts by itself, or nothing.
struct EndToken {
    bool is_added = false;
    Token token = -1;

    bool fits(const EndToken& other) const {
        return is_added == other.is_added && (!is_added || token == other.token);
    }
    std::string text() const { return is_added ? "token " + std::to_string(token) : "none"; }
};

std::optional<VocabularyMismatch> end_mismatch(const char* reason, const EndToken& target,
                                               const EndToken& drafter) {
    if (target.fits(drafter)) {
        return std::nullopt;
    }
    return VocabularyMismatch{reason, compared(target.text(), drafter.text())};
}

std::optional<VocabularyMismatch> text_mismatch(const Vocabulary& target, const Vocabulary& drafter) {
    const std::int32_t n_shared = std::min(target.size(), drafter.size());
    for (Token token = first_compared; token < n_shared; ++token) {
        if (target.piece(token, true) != drafter.piece(token, true)) {
            return VocabularyMismatch{"vocab-text", "token " + std::to_string(token) + " has another text"};
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<VocabularyMismatch> mismatch_of(const Vocabulary& target, const Vocabulary& drafter) {
    if (target.type() != drafter.type()) {
        return VocabularyMismatch{
            "vocab-type", compared("type " + std::to_string(target.type()), std::to_string(drafter.type()))};
    }
    if (auto mismatch = end_mismatch("vocab-bos", {target.adds_bos(), target.bos()},
                                     {drafter.adds_bos(), drafter.bos()})) {
        return mismatch;
    }
    if (auto mismatch = end_mismatch("vocab-eos", {target.adds_eos(), target.eos()},
                                     {drafter.adds_eos(), drafter.eos()})) {
        return mismatch;
    }
    if (std::abs(target.size() - drafter.size()) > max_size_difference) {
        return VocabularyMismatch{
            "vocab-size",
            compared(std::to_string(target.size()) + " tokens", std::to_string(drafter.size())) +
                "; they may differ by " + std::to_string(max_size_difference)};
    }
    return text_mismatch(target, drafter);
}

}  // namespace paddock
