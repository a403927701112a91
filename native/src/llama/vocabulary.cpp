#include "llama/vocabulary.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace paddock {
namespace {

/// Bytes that hold nearly every piece, so that one call is enough.
constexpr std::size_t usual_piece_bytes = 64;

std::int32_t checked_length(std::size_t length) {
    // libllama counts in 32 bits and answers with the negative of what it would need.
    if (length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
        throw std::invalid_argument("text of " + std::to_string(length) +
                                    " bytes is too long to be tokenised");
    }
    return static_cast<std::int32_t>(length);
}

}  // namespace

LlamaVocabulary::LlamaVocabulary(ModelHandle model)
    : model_(std::move(model)),
      vocab_(llama_model_get_vocab(model_.get())),
      size_(llama_vocab_n_tokens(vocab_)) {}

std::int32_t LlamaVocabulary::type() const { return llama_vocab_type(vocab_); }

bool LlamaVocabulary::adds_bos() const { return llama_vocab_get_add_bos(vocab_); }

bool LlamaVocabulary::adds_eos() const { return llama_vocab_get_add_eos(vocab_); }

Token LlamaVocabulary::bos() const { return llama_vocab_bos(vocab_); }

Token LlamaVocabulary::eos() const { return llama_vocab_eos(vocab_); }

bool LlamaVocabulary::is_end(Token token) const { return holds(token) && llama_vocab_is_eog(vocab_, token); }

std::string LlamaVocabulary::piece(Token token, bool special) const {
    if (!holds(token)) return {};
    std::string text(usual_piece_bytes, '\0');
    std::int32_t n =
        llama_token_to_piece(vocab_, token, text.data(), static_cast<std::int32_t>(text.size()), 0, special);
    if (n < 0) {
        text.resize(static_cast<std::size_t>(-n));
        n = llama_token_to_piece(vocab_, token, text.data(), -n, 0, special);
    }
    text.resize(static_cast<std::size_t>(std::max(n, 0)));
    return text;
}

std::vector<Token> LlamaVocabulary::tokenize(std::string_view text, bool add_special,
                                             bool parse_special) const {
    const std::int32_t length = checked_length(text.size());
    // A token is at least one byte, apart from those put at the ends.
    std::vector<Token> tokens(text.size() + 2 * static_cast<std::size_t>(add_special));
    std::int32_t n = llama_tokenize(vocab_, text.data(), length, tokens.data(),
                                    static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
    if (n < 0 && n != std::numeric_limits<std::int32_t>::min()) {
        tokens.resize(static_cast<std::size_t>(-n));
        n = llama_tokenize(vocab_, text.data(), length, tokens.data(), -n, add_special, parse_special);
    }
    if (n < 0) throw std::invalid_argument("the text can't be tokenised");
    tokens.resize(static_cast<std::size_t>(n));
    return tokens;
}

std::string LlamaVocabulary::detokenize(const std::vector<Token>& tokens, bool special) const {
    std::string text;
    text.reserve(tokens.size() * 4);
    for (const Token token : tokens) text += piece(token, special);
    return text;
}

}  // namespace paddock
