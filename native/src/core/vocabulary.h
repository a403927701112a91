// The tokens of a loaded model. Safe to read from every thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace paddock {

class Vocabulary {
  public:
    virtual ~Vocabulary() = default;

    virtual std::int32_t size() const = 0;
    /// How texts are cut into tokens, as libllama numbers it.
    virtual std::int32_t type() const = 0;
    /// Whether a prompt starts with BOS, or ends with EOS, by itself (10 §9.2).
    virtual bool adds_bos() const = 0;
    virtual bool adds_eos() const = 0;
    /// -1: there is none.
    virtual Token bos() const = 0;
    virtual Token eos() const = 0;
    virtual bool is_end(Token token) const = 0;
    /// Bytes of a token; empty for an id outside the vocabulary. `special` shows the text of control tokens.
    virtual std::string piece(Token token, bool special) const = 0;
    virtual std::vector<Token> tokenize(std::string_view text, bool add_special,
                                        bool parse_special) const = 0;
    virtual std::string detokenize(const std::vector<Token>& tokens, bool special) const = 0;
};

}  // namespace paddock
