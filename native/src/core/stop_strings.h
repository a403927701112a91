// Finds stop strings in text that arrives in pieces (10 §16.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paddock {

struct StopHit {
    /// Byte of the whole text at which the word begins.
    std::size_t start = 0;
    /// Index of the word in the list that was given.
    std::size_t word = 0;
};

/// An Aho-Corasick automaton: each byte of text costs a constant time on average, however many words there
/// are. Takes 16 bytes for each byte of the words.
class StopStrings {
  public:
    /// Empty words are never found.
    explicit StopStrings(std::span<const std::string> words);

    /// Reads on in the text.
    void feed(std::string_view piece);

    /// The word that begins first in the text read so far; of those that begin there, the one listed first.
    const std::optional<StopHit>& hit() const { return hit_; }

    /// Whether the text read so far ends in the beginning of a word.
    bool may_continue() const { return state_ != root; }

  private:
    using Index = std::uint32_t;
    static constexpr Index root = 0;
    static constexpr Index none = ~Index{0};

    /// A beginning of a word.
    struct Node {
        /// Children stand side by side, in the order of their bytes.
        Index first_child = none;
        /// Node of the longest proper suffix of its text that is a beginning of a word, too.
        Index suffix = root;
        /// The longest word that its text ends in, by index; `none`: it ends in no word.
        Index word = none;
        std::uint16_t n_children = 0;
        unsigned char byte = 0;
    };

    void add_words(std::span<const std::string> words);
    void link_suffixes();
    Index child(Index node, unsigned char byte) const;
    Index next(Index node, unsigned char byte) const;
    void note_hit(Index word);

    std::vector<Node> nodes_;
    std::vector<std::size_t> lengths_;
    Index state_ = root;
    std::size_t n_read_ = 0;
    std::optional<StopHit> hit_;
};

}  // namespace paddock
