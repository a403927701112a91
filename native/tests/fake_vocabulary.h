// A vocabulary that can be read off: 0 ends a text, 1 begins one, 2 is a control token, and token t from 3 on
// is spelt with one letter or more.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/vocabulary.h"

namespace paddock::testing {

inline constexpr Token token_end = 0;
inline constexpr Token token_begin = 1;
inline constexpr Token token_control = 2;
inline constexpr Token first_letter = 3;

class FakeVocabulary : public Vocabulary {
  public:
    /// `pieces` replaces the spelling of single tokens, e.g. by half a character.
    explicit FakeVocabulary(std::int32_t n_vocab = 64, bool adds_bos = false,
                            std::map<Token, std::string> pieces = {})
        : n_vocab_(n_vocab), adds_bos_(adds_bos), pieces_(std::move(pieces)) {}

    std::int32_t size() const override { return n_vocab_; }
    std::int32_t type() const override { return 1; }
    bool adds_bos() const override { return adds_bos_; }
    bool adds_eos() const override { return false; }
    Token bos() const override { return token_begin; }
    Token eos() const override { return token_end; }
    bool is_end(Token token) const override { return token == token_end; }

    std::string piece(Token token, bool special) const override {
        if (token < 0 || token >= n_vocab_) {
            return "";
        }
        if (token < first_letter) {
            constexpr std::string_view names[] = {"<end>", "<begin>", "<control>"};
            return special ? std::string(names[token]) : "";
        }
        const auto found = pieces_.find(token);
        return found != pieces_.end() ? found->second : spelling(token);
    }

    /// The longest spelling that fits at each place; bytes that none fits are left out.
    std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const override {
        std::vector<Token> tokens;
        if (add_special && adds_bos_) {
            tokens.push_back(token_begin);
        }
        while (!text.empty()) {
            Token best = -1;
            std::size_t length = 1;
            for (Token token = parse_special ? 0 : first_letter; token < n_vocab_; ++token) {
                const std::string spelt = piece(token, true);
                const bool fits = !spelt.empty() && text.starts_with(spelt);
                if (fits && (best < 0 || spelt.size() > length)) {
                    best = token;
                    length = spelt.size();
                }
            }
            if (best >= 0) {
                tokens.push_back(best);
            }
            text.remove_prefix(length);
        }
        return tokens;
    }

    std::string detokenize(const std::vector<Token>& tokens, bool special) const override {
        std::string text;
        for (const Token token : tokens) {
            text += piece(token, special);
        }
        return text;
    }

  private:
    /// a, b, ... z, then aA, bA, ... zA, aB, ...
    static std::string spelling(Token token) {
        constexpr std::int32_t n_letters = 26;
        const std::int32_t number = token - first_letter;
        std::string spelt(1, static_cast<char>('a' + number % n_letters));
        if (number >= n_letters) {
            spelt += static_cast<char>('A' + (number / n_letters - 1) % n_letters);
        }
        return spelt;
    }

    std::int32_t n_vocab_;
    bool adds_bos_;
    std::map<Token, std::string> pieces_;
};

}  // namespace paddock::testing
