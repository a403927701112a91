#include "core/speculation/ngram_counts.h"

#include <algorithm>
#include <limits>
#include <random>

namespace paddock {

namespace {

constexpr std::size_t first_buckets = 64;

/// Drawn once: a text can't be made so that all its n-grams fall into a few buckets.
std::uint64_t hash_seed() {
    static const std::uint64_t seed = [] {
        std::random_device device;
        return (std::uint64_t{device()} << 32U) | device();
    }();
    return seed;
}

/// The finaliser of splitmix64.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31U);
}

}  // namespace

void NgramCounts::clear() {
    nodes_.assign(1, {});
    buckets_.assign(first_buckets, none);
}

std::size_t NgramCounts::bucket_of(Node parent, Token token) const {
    const std::uint64_t key =
        (std::uint64_t{static_cast<std::uint32_t>(parent)} << 32U) | static_cast<std::uint32_t>(token);
    const std::size_t mask = buckets_.size() - 1;
    std::size_t bucket = mixed(key + hash_seed()) & mask;
    while (buckets_[bucket] != none) {
        const Entry& entry = at(buckets_[bucket]);
        if (entry.parent == parent && entry.token == token) {
            break;
        }
        bucket = (bucket + 1) & mask;
    }
    return bucket;
}

NgramCounts::Node NgramCounts::child(Node node, Token token) const {
    return buckets_[bucket_of(node, token)];
}

NgramCounts::Node NgramCounts::find(std::span<const Token> ngram) const {
    Node node = root;
    for (const Token token : ngram) {
        node = child(node, token);
        if (node == none) {
            return none;
        }
    }
    return node;
}

void NgramCounts::grow() {
    buckets_.assign(buckets_.size() * 2, none);
    // In the order in which they came: what is removed last-in first-out leaves no gap in a run of buckets.
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
        buckets_[bucket_of(nodes_[i].parent, nodes_[i].token)] = static_cast<Node>(i);
    }
}

NgramCounts::Node NgramCounts::make(Node parent, Token token) {
    if (nodes_.size() >= static_cast<std::size_t>(std::numeric_limits<Node>::max())) {
        return none;
    }
    if (2 * (nodes_.size() + 1) > buckets_.size()) {
        grow();
    }
    const auto made = static_cast<Node>(nodes_.size());
    buckets_[bucket_of(parent, token)] = made;
    nodes_.push_back({.parent = parent, .token = token, .sibling = at(parent).first_child});
    at(parent).first_child = made;
    return made;
}

bool NgramCounts::is_more_frequent(Node node, Node other) const {
    return at(node).count != at(other).count ? at(node).count > at(other).count
                                             : at(node).token < at(other).token;
}

NgramCounts::Node NgramCounts::add(Node node, Token token, std::int32_t count) {
    // A top follower that has to be looked for stays so: only then is it known that it is one.
    const bool is_top_known = at(node).top_child != none || at(node).first_child == none;
    Node found = child(node, token);
    if (found == none) {
        found = make(node, token);
        if (found == none) {
            return none;
        }
    }
    const std::int32_t added = std::min(count, max_count - at(found).count);
    at(found).count += added;
    Entry& parent = at(node);
    parent.follower_sum += added;
    if (is_top_known && (parent.top_child == none || is_more_frequent(found, parent.top_child))) {
        parent.top_child = found;
    }
    return found;
}

void NgramCounts::remove(Node node) {
    const Node above = at(node).parent;
    Entry& parent = at(above);
    --parent.follower_sum;
    if (parent.top_child == node) {
        parent.top_child = none;
    }
    if (--at(node).count == 0) {
        // The newest of all n-grams, and so the first among its parent's followers.
        buckets_[bucket_of(above, at(node).token)] = none;
        parent.first_child = at(node).sibling;
        nodes_.pop_back();
    }
}

NgramCounts::Node NgramCounts::top_follower(Node node) {
    if (at(node).top_child == none) {
        Node top = none;
        for_each_follower(node, [&](Node follower) {
            if (top == none || is_more_frequent(follower, top)) {
                top = follower;
            }
        });
        at(node).top_child = top;
    }
    return at(node).top_child;
}

}  // namespace paddock
