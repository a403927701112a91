#include "core/stop_strings.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace paddock {

StopStrings::StopStrings(std::span<const std::string> words) {
    lengths_.reserve(words.size());
    for (const std::string& word : words) {
        lengths_.push_back(word.size());
    }
    add_words(words);
    link_suffixes();
}

/// Level by level, so that the children of a node stand side by side, and every node behind all shorter ones.
void StopStrings::add_words(std::span<const std::string> words) {
    // Words that begin with a node's text; they are neighbours in sorted order.
    struct Family {
        std::size_t begin = 0;
        std::size_t end = 0;
        std::size_t depth = 0;
    };
    std::vector<Index> order(words.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::sort(order, {},
                      [&](Index index) { return std::pair(std::string_view(words[index]), index); });
    std::queue<Family> families({Family{.end = words.size()}});
    nodes_.assign(1, {});
    for (Index node = root; node < nodes_.size(); ++node, families.pop()) {
        auto [begin, end, depth] = families.front();
        if (begin < end && lengths_[order[begin]] == depth && node != root) {
            // The first of equal ones; at the root they are empty, and count for nothing.
            nodes_[node].word = order[begin];
        }
        while (begin < end && lengths_[order[begin]] == depth) {
            ++begin;
        }
        nodes_[node].first_child = static_cast<Index>(nodes_.size());
        while (begin < end) {
            const char byte = words[order[begin]][depth];
            const std::size_t first = begin;
            while (begin < end && words[order[begin]][depth] == byte) {
                ++begin;
            }
            nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
            families.push({.begin = first, .end = begin, .depth = depth + 1});
            ++nodes_[node].n_children;
        }
    }
}

/// Shorter texts first: what a node needs of them is there already.
void StopStrings::link_suffixes() {
    for (Index parent = root; parent < nodes_.size(); ++parent) {
        for (Index i = 0; parent != root && i < nodes_[parent].n_children; ++i) {
            Node& node = nodes_[nodes_[parent].first_child + i];
            node.suffix = next(nodes_[parent].suffix, node.byte);
            if (node.word == none) {
                node.word = nodes_[node.suffix].word;
            }
        }
    }
}

void StopStrings::feed(std::string_view piece) {
    for (const char byte : piece) {
        state_ = next(state_, static_cast<unsigned char>(byte));
        ++n_read_;
        if (nodes_[state_].word != none) {
            note_hit(nodes_[state_].word);
        }
    }
}

StopStrings::Index StopStrings::child(Index node, unsigned char byte) const {
    const auto children = std::span(nodes_).subspan(nodes_[node].first_child, nodes_[node].n_children);
    const auto found = std::ranges::lower_bound(children, byte, {}, &Node::byte);
    const bool is_child = found != children.end() && found->byte == byte;
    return is_child ? nodes_[node].first_child + static_cast<Index>(found - children.begin()) : none;
}

StopStrings::Index StopStrings::next(Index node, unsigned char byte) const {
    while (true) {
        const Index found = child(node, byte);
        if (found != none || node == root) {
            return found == none ? root : found;
        }
        node = nodes_[node].suffix;
    }
}

/// Shorter words that end here begin later than this one, so that they need no look.
void StopStrings::note_hit(Index word) {
    const StopHit found{.start = n_read_ - lengths_[word], .word = word};
    const bool is_first = !hit_.has_value() || found.start < hit_->start ||
                          (found.start == hit_->start && found.word < hit_->word);
    if (is_first) {
        hit_ = found;
    }
}

}  // namespace paddock
