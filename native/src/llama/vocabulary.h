// Tokens of a model, by libllama.
#pragma once

#include "core/vocabulary.h"
#include "llama/handles.h"

namespace paddock {

/// Keeps the model in memory for as long as somebody reads from it.
class LlamaVocabulary final : public Vocabulary {
  public:
    explicit LlamaVocabulary(ModelHandle model);

    std::int32_t size() const override { return size_; }
    std::int32_t type() const override;
    bool adds_bos() const override;
    bool adds_eos() const override;
    Token bos() const override;
    Token eos() const override;
    bool is_end(Token token) const override;
    std::string piece(Token token, bool special) const override;
    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const override;
    std::string detokenize(const std::vector<Token>& tokens, bool special) const override;

    const llama_vocab* handle() const { return vocab_; }

  private:
    bool holds(Token token) const { return token >= 0 && token < size_; }

    ModelHandle model_;
    const llama_vocab* vocab_;
    std::int32_t size_;
};

}  // namespace paddock
