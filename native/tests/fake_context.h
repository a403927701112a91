// A decoding context without a model: its memory is exact, and its logits follow from everything that memory
// holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/context.h"
#include "fake_journal.h"
#include "fake_lane.h"

namespace paddock::testing {

struct FakeContextOptions {
    ContextFacts facts{
        .n_ctx = 512, .n_ctx_slot = 128, .n_ctx_train = 128, .n_batch = 64, .n_ubatch = 32, .n_embd_out = 4};
    /// Sequences: these, and behind them those of `facts.n_branch_ids`.
    std::int32_t n_slots = 4;
    std::int32_t n_vocab = 64;
    /// Tokens below are never the most likely: where the fake vocabulary has its control tokens.
    Token first_likely = 3;
    /// Refuses to remove anything but whole sequences.
    bool refuses_partial_removal = false;
    /// State can't be read, or can't be written back.
    bool fails_to_read_state = false;
    bool fails_to_write_state = false;
    /// Of every slot file.
    std::optional<std::string> file_problem;
    /// Codes of the next decodes; when they are used up memory decides.
    std::deque<std::int32_t> codes;
    /// Likeliest token after a sequence's tokens, for tests that want to say it themselves; none: as
    /// computed.
    std::function<std::optional<Token>(const std::vector<Token>&)> next;
    /// The likeliest token but one, nearly as likely as the first; none: as computed.
    std::function<std::optional<Token>(const std::vector<Token>&)> second;
};

/// Memory as libllama's: positions of each sequence in order, with a capacity. With `n_swa` the oldest fall
/// out of the window, and what is computed looks no further back. On recurrent and hybrid facts a running
/// state stands for all tokens, and only goes back as a whole, through a state, or by `n_rs_seq` copies of
/// it. Logits depend on tokens, their positions and the adapters that they were computed under, so that equal
/// output means equal memory.
class FakeContext : public Context {
  public:
    explicit FakeContext(FakeContextOptions options = {}, std::shared_ptr<Journal> journal = nullptr)
        : options_(std::move(options)),
          journal_(journal != nullptr ? std::move(journal) : std::make_shared<Journal>()),
          lanes_(static_cast<std::size_t>(options_.n_slots + options_.facts.n_branch_ids)) {}

    FakeContextOptions& options() { return options_; }
    Journal& journal() { return *journal_; }

    /// Tokens that memory holds for a sequence, in the order of their positions.
    std::vector<Token> tokens(SequenceId sequence) const {
        std::vector<Token> tokens;
        for (const auto& [position, cell] : lane(sequence).cells) {
            tokens.push_back(cell.token);
        }
        return tokens;
    }

    const ContextFacts& facts() const override { return options_.facts; }

    std::int32_t decode(std::span<const BatchRow> rows) override {
        std::int32_t code = check(rows);
        if (!options_.codes.empty()) {
            code = options_.codes.front();
            options_.codes.pop_front();
        }
        journal_->add(Journal::Window{{rows.begin(), rows.end()}, code, adapters_, embeds_});
        outputs_.clear();
        if (code == aborted) {
            // As the library does: what was computed until then stays. It is no whole decode to step back in.
            take(rows.first(rows.size() / 2));
            std::ranges::for_each(lanes_, [](FakeLane& lane) { lane.recent_states.clear(); });
        }
        if (code == 0) {
            take(rows);
        }
        return code;
    }

    std::span<const float> logits(std::int32_t index) override {
        return embeds_ ? std::span<const float>{} : output(index);
    }
    std::span<const float> row_embedding(std::int32_t index) override {
        return embeds_ ? output(index) : std::span<const float>{};
    }
    std::span<const float> sequence_embedding(SequenceId sequence) override {
        const auto found = pooled_.find(sequence);
        return embeds_ && facts().pooling != 0 && found != pooled_.end()
                   ? std::span<const float>(found->second)
                   : std::span<const float>{};
    }
    void set_embeddings(bool on) override { embeds_ = on; }

    bool remove(SequenceId sequence, Position from, Position to) override {
        journal_->add("remove " + std::to_string(sequence) + " " + range(from, to));
        FakeLane& lane = lane_of(sequence);
        const Position first = std::max(0, from);
        const Position behind = to < 0 ? lane.end() : std::min(to, lane.end());
        const bool is_whole = first <= lane.begin() && behind >= lane.end();
        const bool takes_some = !is_whole && first < behind;
        const bool takes_state = has_running_state() && first <= lane.state_position;
        if (takes_some && takes_state && can_step_back(lane, first, behind)) {
            lane.step_back(lane.state_position + 1 - first);
            lane.cells.erase(lane.cells.lower_bound(first), lane.cells.end());
            return true;
        }
        if (takes_some && (options_.refuses_partial_removal || takes_state)) {
            return false;
        }
        lane.cells.erase(lane.cells.lower_bound(first), lane.cells.lower_bound(std::max(first, behind)));
        if (is_whole || lane.cells.empty()) {
            lane = {};
        }
        return true;
    }

    void shift(SequenceId sequence, Position from, Position to, Position delta) override {
        journal_->add("shift " + std::to_string(sequence) + " " + range(from, to) + " " +
                      std::to_string(delta));
        FakeLane& lane = lane_of(sequence);
        const auto begin = lane.cells.lower_bound(from);
        const auto end = to < 0 ? lane.cells.end() : lane.cells.lower_bound(to);
        const std::vector<std::pair<Position, FakeCell>> moved(begin, end);
        lane.cells.erase(begin, end);
        for (const auto& [position, cell] : moved) {
            lane.cells[position + delta] = cell;
        }
        lane.window_begin = std::max(0, lane.window_begin + (from == 0 ? delta : 0));
    }

    void copy(SequenceId from, SequenceId to, Position begin, Position end) override {
        const bool is_whole = begin == 0 && end < 0;
        journal_->add("copy " + std::to_string(from) + " " + std::to_string(to) +
                      (is_whole ? "" : " " + range(begin, end)));
        if (is_whole) {
            lane_of(to) = lane_of(from);
            return;
        }
        for (const auto& [position, cell] : lane(from).cells) {
            if (position >= begin && (end < 0 || position < end)) {
                lane_of(to).cells[position] = cell;
            }
        }
    }

    Position position_min(SequenceId sequence) override {
        const FakeLane& held = lane(sequence);
        if (held.cells.empty()) {
            return -1;
        }
        if (has_running_state()) {
            return held.state_position;
        }
        const auto first = held.cells.lower_bound(held.window_begin);
        return first == held.cells.end() ? -1 : first->first;
    }

    Position position_max(SequenceId sequence) override {
        const FakeLane& held = lane(sequence);
        if (held.cells.empty()) {
            return -1;
        }
        return has_running_state() ? held.state_position : held.cells.rbegin()->first;
    }

    std::size_t state_size(SequenceId sequence, bool partial) override {
        return lane(sequence).pack(partial).size();
    }

    std::vector<std::byte> read_state(SequenceId sequence, bool partial) override {
        return options_.fails_to_read_state ? std::vector<std::byte>{} : lane(sequence).pack(partial);
    }

    bool write_state(SequenceId sequence, std::span<const std::byte> state, bool partial) override {
        journal_->add("write " + std::to_string(sequence) + (partial ? " partial" : " full"));
        return !options_.fails_to_write_state && lane_of(sequence).unpack(state, partial);
    }

    /// The file holds the token count, the tokens and a full state.
    std::size_t save_file(SequenceId sequence, const std::string& path,
                          const std::vector<Token>& tokens) override {
        std::ofstream file(path, std::ios::binary);
        const std::uint64_t n_tokens = tokens.size();
        const std::vector<std::byte> state = lane(sequence).pack(false);
        file.write(reinterpret_cast<const char*>(&n_tokens), sizeof n_tokens);
        file.write(reinterpret_cast<const char*>(tokens.data()), bytes_of(tokens));
        file.write(reinterpret_cast<const char*>(state.data()), bytes_of(state));
        return file.good() ? static_cast<std::size_t>(file.tellp()) : 0;
    }

    std::optional<std::string> problem_of_file(const std::string& /*path*/,
                                               std::size_t /*capacity*/) override {
        return options_.file_problem;
    }

    std::size_t load_file(SequenceId sequence, const std::string& path, std::size_t capacity,
                          std::vector<Token>& tokens) override {
        std::ifstream file(path, std::ios::binary);
        std::uint64_t n_tokens = 0;
        file.read(reinterpret_cast<char*>(&n_tokens), sizeof n_tokens);
        if (!file.good() || n_tokens > capacity) {
            return 0;
        }
        tokens.resize(n_tokens);
        file.read(reinterpret_cast<char*>(tokens.data()), bytes_of(tokens));
        const std::vector<char> rest((std::istreambuf_iterator<char>(file)),
                                     std::istreambuf_iterator<char>());
        const bool is_read = lane_of(sequence).unpack(std::as_bytes(std::span(rest)), false);
        return is_read ? sizeof n_tokens + tokens.size() * sizeof(Token) + rest.size() : 0;
    }

    void set_adapters(std::span<const AdapterScale> scales) override {
        adapters_.clear();
        std::ranges::copy_if(scales, std::back_inserter(adapters_),
                             [](const AdapterScale& adapter) { return adapter.scale != 0.0F; });
    }

  private:
    static constexpr std::int32_t no_room = 1;
    static constexpr std::int32_t aborted = 2;
    static constexpr std::int32_t invalid = -1;

    const FakeLane& lane(SequenceId sequence) const { return lanes_.at(static_cast<std::size_t>(sequence)); }
    FakeLane& lane_of(SequenceId sequence) { return lanes_.at(static_cast<std::size_t>(sequence)); }
    bool has_running_state() const { return facts().is_recurrent || facts().is_hybrid; }

    /// Once after each decode, and at most `n_rs_seq` tokens.
    bool can_step_back(const FakeLane& lane, Position first, Position behind) const {
        const Position n_steps = lane.state_position + 1 - first;
        return !options_.refuses_partial_removal && behind == lane.end() && n_steps <= facts().n_rs_seq &&
               n_steps < static_cast<Position>(lane.recent_states.size());
    }

    static std::string range(Position from, Position to) {
        return "[" + std::to_string(from) + "," + (to < 0 ? "end" : std::to_string(to)) + ")";
    }
    template <typename Value>
    static std::streamsize bytes_of(const std::vector<Value>& values) {
        return static_cast<std::streamsize>(values.size() * sizeof(Value));
    }
    std::uint64_t salt() const {
        std::uint64_t salt = 0;
        for (const AdapterScale& adapter : adapters_) {
            salt = mixed(salt, static_cast<std::uint64_t>(adapter.adapter));
            salt = mixed(salt, static_cast<std::uint64_t>(adapter.scale * 1000.0F));
        }
        return salt;
    }

    std::int32_t check(std::span<const BatchRow> rows) const {
        if (rows.size() > static_cast<std::size_t>(facts().n_batch)) {
            return invalid;
        }
        std::map<SequenceId, std::int32_t> n_new;
        for (const BatchRow& row : rows) {
            if (row.token < 0 || row.token >= options_.n_vocab ||
                (!row.branches.empty() && !facts().kv_unified)) {
                return invalid;
            }
            for (const SequenceId sequence : sequences_of(row)) {
                if (sequence < 0 || sequence >= static_cast<SequenceId>(lanes_.size())) {
                    return invalid;
                }
                const Position expected =
                    facts().has_memory ? end_of(sequence) + n_new[sequence] : row.position;
                if (row.position != expected) {
                    return invalid;
                }
                ++n_new[sequence];
            }
        }
        return facts().has_memory && !has_room(n_new, rows.size()) ? no_room : 0;
    }

    static std::vector<SequenceId> sequences_of(const BatchRow& row) {
        std::vector<SequenceId> sequences{row.sequence};
        sequences.insert(sequences.end(), row.branches.begin(), row.branches.end());
        return sequences;
    }

    Position end_of(SequenceId sequence) const {
        const FakeLane& held = lane(sequence);
        return has_running_state() ? held.state_position + 1 : held.end();
    }

    bool has_room(const std::map<SequenceId, std::int32_t>& n_new, std::size_t n_rows) const {
        std::size_t n_held = 0;
        std::set<std::uint64_t> held;
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            const auto found = n_new.find(static_cast<SequenceId>(i));
            const std::size_t n_lane =
                lanes_[i].cells.size() + static_cast<std::size_t>(found == n_new.end() ? 0 : found->second);
            if (!facts().kv_unified && n_lane > static_cast<std::size_t>(facts().n_ctx_slot)) {
                return false;
            }
            n_held += n_lane;
            for (const auto& [position, cell] : lanes_[i].cells) {
                held.insert(cell.row);
            }
        }
        const std::size_t n_wanted = facts().kv_unified ? held.size() + n_rows : n_held;
        return n_wanted <= static_cast<std::size_t>(facts().n_ctx);
    }

    void take(std::span<const BatchRow> rows) {
        pooled_.clear();
        if (!facts().has_memory) {
            lanes_.assign(lanes_.size(), {});
        }
        for (const BatchRow& row : rows) {
            lane_of(row.sequence).recent_states.clear();
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const BatchRow& row = rows[i];
            ++n_rows_;
            for (const SequenceId sequence : sequences_of(row)) {
                FakeLane& held = lane_of(sequence);
                held.take(row.position, row.token, salt(), n_rows_);
                if (facts().n_swa > 0) {
                    held.window_begin = std::max(held.window_begin, row.position - facts().n_swa + 1);
                }
            }
            if (row.output) {
                write_output(static_cast<std::int32_t>(i), row);
            }
        }
    }

    void write_output(std::int32_t index, const BatchRow& row) {
        const FakeLane& held = lane(row.sequence);
        const std::uint64_t hash = has_running_state() ? held.state : held.hash();
        if (embeds_) {
            const std::int32_t n_values = facts().pooling == 4 ? facts().n_classes : facts().n_embd_out;
            std::vector<float> values(static_cast<std::size_t>(n_values));
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<float>(mixed(hash, i) % 1000) / 1000.0F;
            }
            pooled_[row.sequence] = values;
            outputs_[index] = std::move(values);
            return;
        }
        std::vector<float> values(static_cast<std::size_t>(options_.n_vocab));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(mixed(hash, i) % 1000) / 1000.0F;
        }
        const auto n_likely = static_cast<std::uint64_t>(options_.n_vocab - options_.first_likely);
        Token likeliest = options_.first_likely + static_cast<Token>((hash >> 16) % n_likely);
        if (options_.next) {
            likeliest = options_.next(tokens(row.sequence)).value_or(likeliest);
        }
        if (options_.second) {
            if (const auto token = options_.second(tokens(row.sequence))) {
                values[static_cast<std::size_t>(*token)] = 9.5F;
            }
        }
        values[static_cast<std::size_t>(likeliest)] = 10.0F;
        outputs_[index] = std::move(values);
    }

    std::span<const float> output(std::int32_t index) const {
        const auto found = outputs_.find(index);
        return found == outputs_.end() ? std::span<const float>{} : std::span<const float>(found->second);
    }

    FakeContextOptions options_;
    std::shared_ptr<Journal> journal_;
    std::vector<FakeLane> lanes_;
    std::vector<AdapterScale> adapters_;
    bool embeds_ = false;
    /// Computed so far.
    std::uint64_t n_rows_ = 0;
    std::map<std::int32_t, std::vector<float>> outputs_;
    std::map<SequenceId, std::vector<float>> pooled_;
};

}  // namespace paddock::testing
