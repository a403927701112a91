#include "core/stop_strings.h"

#include <algorithm>
#include <numeric>

namespace paddock {

StopStrings::StopStrings(std::span<const std::string> words) : nodes_(1) {
    lengths_.reserve(words.size());
    for (const std::string& word : words) {
        lengths_.push_back(word.size());
    }
    add_words(words);
    link_suffixes();
}

/// In sorted order a new node is always the last child of its parent, so that no list of children is searched.
void StopStrings::add_words(std::span<const std::string> words) {
    std::vector<Index> order(words.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index index) { return std::string_view(words[index]); });
    // Nodes of the word before, from the root on.
    std::vector<Index> path{root};
    std::string_view previous;
    for (const Index index : order) {
        const std::string_view word = words[index];
        if (word.empty()) {
            continue;
        }
        const auto shared = static_cast<std::size_t>(std::ranges::mismatch(word, previous).in1 - word.begin());
        Index left_sibling = path.size() > shared + 1 ? path[shared + 1] : none;
        path.resize(shared + 1);
        for (const char byte : word.substr(shared)) {
            const auto added = static_cast<Index>(nodes_.size());
            nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
            (left_sibling == none ? nodes_[path.back()].first_child : nodes_[left_sibling].next_sibling) = added;
            left_sibling = none;
            path.push_back(added);
        }
        // Of equal words the one listed first counts.
        Node& last = nodes_[path.back()];
        last.word = std::min(last.word, index);
        previous = word;
    }
}

/// Nearest to the root first: what a node needs of shorter ones is there already.
void StopStrings::link_suffixes() {
    std::vector<Index> queue{root};
    for (std::size_t at = 0; at < queue.size(); ++at) {
        const Index parent = queue[at];
        for (Index node = nodes_[parent].first_child; node != none; node = nodes_[node].next_sibling) {
            queue.push_back(node);
            if (parent == root) {
                continue;
            }
            nodes_[node].suffix = next(nodes_[parent].suffix, nodes_[node].byte);
            if (nodes_[node].word == none) {
                nodes_[node].word = nodes_[nodes_[node].suffix].word;
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
    Index found = nodes_[node].first_child;
    while (found != none && nodes_[found].byte < byte) {
        found = nodes_[found].next_sibling;
    }
    return found != none && nodes_[found].byte == byte ? found : none;
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
