// What a sequence's memory holds, in tokens (10 §2.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/context.h"
#include "core/types.h"

namespace paddock {

/// State of a sequence at an earlier time, for memories that can't be cut back (10 §11).
struct Checkpoint {
    /// Positions that memory held, both inclusive.
    Position pos_min = 0;
    Position pos_max = 0;
    /// Tokens of the list that the state stands for.
    std::int32_t n_tokens = 0;
    /// Partial state, as `Context::read_state` gives it.
    std::vector<std::byte> state;
};

/// Adapters that memory was computed under: enabled ones in order, activated adapters left out (10 §19.4).
using LoraKey = std::vector<AdapterScale>;

/// The list mirrors the memory of its sequence exactly; checkpoints are in the order of their making.
struct PromptRecord {
    std::vector<Token> tokens;
    LoraKey lora_key;
    std::deque<Checkpoint> checkpoints;
};

/// Bytes that a record takes, states of its checkpoints included.
inline std::size_t bytes_of(const PromptRecord& record) {
    std::size_t bytes = record.tokens.size() * sizeof(Token) + record.lora_key.size() * sizeof(AdapterScale);
    for (const Checkpoint& checkpoint : record.checkpoints) {
        bytes += sizeof(Checkpoint) + checkpoint.state.size();
    }
    return bytes;
}

/// Drops every checkpoint that reaches `position` or lies behind it.
inline void drop_checkpoints_from(PromptRecord& record, Position position) {
    std::erase_if(record.checkpoints, [=](const Checkpoint& kept) { return kept.pos_max >= position; });
}

}  // namespace paddock
