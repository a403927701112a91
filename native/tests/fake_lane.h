// What a fake context remembers of one sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/types.h"

namespace paddock::testing {

/// A hash that grows by one value.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    return (hash ^ (value + 1)) * 0x100000001B3ULL + (hash >> 29);
}

struct FakeCell {
    Token token = 0;
    /// Of the adapters that it was computed under.
    std::uint64_t salt = 0;
    /// The row that it was computed from: sequences that share it take no more room.
    std::uint64_t row = 0;
};

struct FakeLane {
    std::map<Position, FakeCell> cells;
    /// First position that the sliding window still holds.
    Position window_begin = 0;
    /// Running state of recurrent models, and the last position that went into it.
    std::uint64_t state = 0;
    Position state_position = -1;
    /// The running state after each row of the last decode, until it was stepped back once.
    std::vector<std::uint64_t> recent_states;

    Position begin() const { return cells.empty() ? 0 : cells.begin()->first; }
    Position end() const { return cells.empty() ? 0 : cells.rbegin()->first + 1; }

    /// Everything that a result at the end depends on, where nothing runs along.
    std::uint64_t hash() const {
        std::uint64_t hash = 0;
        for (auto cell = cells.lower_bound(window_begin); cell != cells.end(); ++cell) {
            hash = mixed(hash, static_cast<std::uint64_t>(cell->first));
            hash = mixed(hash, static_cast<std::uint64_t>(cell->second.token));
            hash = mixed(hash, cell->second.salt);
        }
        return hash;
    }

    void take(Position position, Token token, std::uint64_t salt, std::uint64_t row) {
        cells[position] = {token, salt, row};
        state = mixed(mixed(state, static_cast<std::uint64_t>(token)), salt);
        state_position = position;
        recent_states.push_back(state);
    }

    /// Only within the last decode, behind its first row.
    void step_back(Position n_steps) {
        state = recent_states[recent_states.size() - 1 - static_cast<std::size_t>(n_steps)];
        state_position -= n_steps;
        recent_states.clear();
    }

    /// Bytes of it; `partial` leaves out the cells.
    std::vector<std::byte> pack(bool partial) const {
        std::vector<std::byte> packed;
        append(packed, partial ? std::uint64_t{0} : std::uint64_t{cells.size()});
        append(packed, state);
        append(packed, state_position);
        append(packed, window_begin);
        if (!partial) {
            for (const auto& [position, cell] : cells) {
                append(packed, position);
                append(packed, cell.token);
                append(packed, cell.salt);
                append(packed, cell.row);
            }
        }
        return packed;
    }

    /// False, and nothing changes, unless the bytes are those of a whole state.
    bool unpack(std::span<const std::byte> packed, bool partial) {
        FakeLane restored;
        std::uint64_t n_cells = 0;
        bool is_good = take_from(packed, n_cells) && take_from(packed, restored.state) &&
                       take_from(packed, restored.state_position) && take_from(packed, restored.window_begin);
        if (partial) {
            restored.cells = cells;
        }
        for (std::uint64_t i = 0; is_good && i < n_cells; ++i) {
            Position position = 0;
            FakeCell cell;
            is_good = take_from(packed, position) && take_from(packed, cell.token) &&
                      take_from(packed, cell.salt) && take_from(packed, cell.row);
            restored.cells[position] = cell;
        }
        if (is_good && packed.empty()) {
            *this = std::move(restored);
            return true;
        }
        return false;
    }

  private:
    template <typename Value>
    static void append(std::vector<std::byte>& packed, Value value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        packed.insert(packed.end(), bytes.begin(), bytes.end());
    }

    template <typename Value>
    static bool take_from(std::span<const std::byte>& packed, Value& value) {
        if (packed.size() < sizeof value) {
            return false;
        }
        std::memcpy(&value, packed.data(), sizeof value);
        packed = packed.subspan(sizeof value);
        return true;
    }
};

}  // namespace paddock::testing
