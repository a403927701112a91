// How often which token followed an n-gram of up to four tokens (11 §6.6): a tree of n-grams in which the
// followers of an n-gram are its children. Each n-gram and follower takes about 50 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace paddock {

class NgramCounts {
  public:
    /// Number of an n-gram; the root is the empty one.
    using Node = std::int32_t;
    static constexpr Node none = -1;
    static constexpr Node root = 0;
    static constexpr std::size_t max_size = 4;
    /// Larger counts stay at this. `100 * count * count` fits into 63 bits.
    static constexpr std::int32_t max_count = 268'435'456;

    NgramCounts() { clear(); }

    void clear();
    bool is_empty() const { return nodes_.size() == 1; }

    /// `none` where `token` never came behind `node`.
    Node child(Node node, Token token) const;
    Node find(std::span<const Token> ngram) const;
    /// `token` came behind `node` another `count` times; 0 only makes it known. Nothing happens, and the
    /// answer is `none`, when no more n-grams fit.
    Node add(Node node, Token token, std::int32_t count);
    /// Takes back an `add` of 1. REQUIRES: those made after it are taken back already.
    void remove(Node node);

    std::int32_t count(Node node) const { return at(node).count; }
    Token token(Node node) const { return at(node).token; }
    Node parent(Node node) const { return at(node).parent; }
    /// Of all followers together.
    std::int64_t follower_sum(Node node) const { return at(node).follower_sum; }
    /// The most frequent one, the smaller token of two; `none` without any.
    Node top_follower(Node node);

    template <class OnFollower>
    void for_each_follower(Node node, OnFollower on_follower) const {
        for (Node child = at(node).first_child; child != none; child = at(child).sibling) {
            on_follower(child);
        }
    }

  private:
    struct Entry {
        std::int64_t follower_sum = 0;
        Node parent = none;
        Token token = 0;
        std::int32_t count = 0;
        Node first_child = none;
        Node sibling = none;
        /// `none` when it has to be looked for again.
        Node top_child = none;
    };
    std::vector<Entry> nodes_;
    /// Open addressing by (parent, token), at most half full; `none` is free.
    std::vector<Node> buckets_;

    const Entry& at(Node node) const { return nodes_[static_cast<std::size_t>(node)]; }
    Entry& at(Node node) { return nodes_[static_cast<std::size_t>(node)]; }
    bool is_more_frequent(Node node, Node other) const;
    /// Where it is, or would be.
    std::size_t bucket_of(Node parent, Token token) const;
    Node make(Node parent, Token token);
    void grow();
};

}  // namespace paddock
