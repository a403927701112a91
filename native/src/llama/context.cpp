#include "llama/context.h"

#include <algorithm>
#include <exception>

#include "core/slot_file.h"
#include "llama/log.h"
#include "llama/sampler_chain.h"

namespace paddock {
namespace {

/// What decode answers when a backend threw instead of returning a code; libllama uses -1, -2 and -3 itself.
constexpr std::int32_t decode_threw = -4;
constexpr std::int32_t invalid_batch = -1;

llama_state_seq_flags flags_of(bool partial) {
    return partial ? LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY : LLAMA_STATE_SEQ_FLAGS_NONE;
}

std::span<const float> span_of(const float* values, std::size_t count) {
    return values == nullptr ? std::span<const float>() : std::span<const float>(values, count);
}

}  // namespace

LlamaContext::LlamaContext(ModelHandle model, ContextHandle context, ContextFacts facts,
                           std::vector<llama_adapter_lora*> adapters)
    : model_(std::move(model)),
      context_(std::move(context)),
      facts_(facts),
      memory_(llama_get_memory(context_.get())),
      n_vocab_(static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())))),
      adapters_(std::move(adapters)) {
    const auto capacity = static_cast<std::size_t>(facts_.n_batch);
    tokens_.resize(capacity);
    positions_.resize(capacity);
    sequence_counts_.resize(capacity);
    sequences_.reserve(capacity);
    sequence_pointers_.resize(capacity);
    outputs_.resize(capacity);
    fresh_rows_.assign(llama_n_seq_max(context_.get()), 0);
    llama_set_embeddings(context_.get(), embeddings_on_);
}

std::int32_t LlamaContext::decode(std::span<const BatchRow> rows) {
    if (rows.empty() || rows.size() > tokens_.size()) return invalid_batch;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        tokens_[i] = rows[i].token;
        positions_[i] = rows[i].position;
        outputs_[i] = static_cast<std::int8_t>(rows[i].output);
    }
    fill_sequences(rows);
    llama_batch batch{};
    batch.n_tokens = static_cast<std::int32_t>(rows.size());
    batch.token = tokens_.data();
    batch.pos = positions_.data();
    batch.n_seq_id = sequence_counts_.data();
    batch.seq_id = sequence_pointers_.data();
    batch.logits = outputs_.data();
    note_rows({});
    try {
        const std::int32_t code = llama_decode(context_.get(), batch);
        if (code == 0) note_rows(rows);
        return code;
    } catch (const std::exception& error) {
        // GPU drivers throw when the device is lost; the scheduler takes it as a failed decode.
        log_line(LogLevel::error, std::string("decode: ") + error.what());
        return decode_threw;
    }
}

void LlamaContext::fill_sequences(std::span<const BatchRow> rows) {
    sequences_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        sequences_.push_back(rows[i].sequence);
        sequences_.insert(sequences_.end(), rows[i].branches.begin(), rows[i].branches.end());
        sequence_counts_[i] = static_cast<std::int32_t>(1 + rows[i].branches.size());
    }
    std::size_t first = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        sequence_pointers_[i] = &sequences_[first];
        first += static_cast<std::size_t>(sequence_counts_[i]);
    }
}

std::span<const float> LlamaContext::logits(std::int32_t index) {
    return span_of(llama_get_logits_ith(context_.get(), index), n_vocab_);
}

std::span<const float> LlamaContext::row_embedding(std::int32_t index) {
    return span_of(llama_get_embeddings_ith(context_.get(), index),
                   static_cast<std::size_t>(facts_.n_embd_out));
}

std::span<const float> LlamaContext::sequence_embedding(SequenceId sequence) {
    const bool is_rank = facts_.pooling == LLAMA_POOLING_TYPE_RANK;
    const std::int32_t count = is_rank ? facts_.n_classes : facts_.n_embd_out;
    return span_of(llama_get_embeddings_seq(context_.get(), sequence), static_cast<std::size_t>(count));
}

void LlamaContext::set_embeddings(bool on) {
    if (on == embeddings_on_) return;
    embeddings_on_ = on;
    llama_set_embeddings(context_.get(), on);
}

void LlamaContext::note_rows(std::span<const BatchRow> rows) {
    std::ranges::fill(fresh_rows_, 0);
    for (const BatchRow& row : rows) ++fresh_rows_[static_cast<std::size_t>(row.sequence)];
}

/// Whether the running state has a copy of when the sequence ended before `from`, if it has to go back at
/// all.
bool LlamaContext::can_step_back(SequenceId sequence, Position from) const {
    const Position n_steps = llama_memory_seq_pos_max(memory_, sequence) + 1 - from;
    return from <= 0 || n_steps <= 0 || n_steps < fresh_rows_[static_cast<std::size_t>(sequence)];
}

bool LlamaContext::remove(SequenceId sequence, Position from, Position to) {
    if (memory_ == nullptr) return true;
    if (facts_.n_rs_seq == 0) return llama_memory_seq_rm(memory_, sequence, from, to);
    const bool is_end = to < 0 || to > llama_memory_seq_pos_max(memory_, sequence);
    if (is_end && !can_step_back(sequence, from)) return false;
    return llama_memory_seq_rm(memory_, sequence, from, to);
}

void LlamaContext::shift(SequenceId sequence, Position from, Position to, Position delta) {
    if (facts_.can_shift) llama_memory_seq_add(memory_, sequence, from, to, delta);
}

void LlamaContext::copy(SequenceId from, SequenceId to, Position begin, Position end) {
    fresh_rows_[static_cast<std::size_t>(to)] = 0;
    if (memory_ != nullptr) llama_memory_seq_cp(memory_, from, to, begin, end);
}

Position LlamaContext::position_min(SequenceId sequence) {
    return memory_ == nullptr ? -1 : llama_memory_seq_pos_min(memory_, sequence);
}

Position LlamaContext::position_max(SequenceId sequence) {
    return memory_ == nullptr ? -1 : llama_memory_seq_pos_max(memory_, sequence);
}

std::size_t LlamaContext::state_size(SequenceId sequence, bool partial) {
    return llama_state_seq_get_size_ext(context_.get(), sequence, flags_of(partial));
}

std::vector<std::byte> LlamaContext::read_state(SequenceId sequence, bool partial) {
    std::vector<std::byte> state(state_size(sequence, partial));
    const std::size_t written =
        llama_state_seq_get_data_ext(context_.get(), reinterpret_cast<std::uint8_t*>(state.data()),
                                     state.size(), sequence, flags_of(partial));
    if (written != state.size()) state.clear();
    return state;
}

bool LlamaContext::write_state(SequenceId sequence, std::span<const std::byte> state, bool partial) {
    fresh_rows_[static_cast<std::size_t>(sequence)] = 0;
    const std::size_t read =
        llama_state_seq_set_data_ext(context_.get(), reinterpret_cast<const std::uint8_t*>(state.data()),
                                     state.size(), sequence, flags_of(partial));
    return read == state.size() && read > 0;
}

std::size_t LlamaContext::save_file(SequenceId sequence, const std::string& path,
                                    const std::vector<Token>& tokens) {
    return llama_state_seq_save_file(context_.get(), path.c_str(), sequence, tokens.data(), tokens.size());
}

std::optional<std::string> LlamaContext::problem_of_file(const std::string& path, std::size_t capacity) {
    SlotFileParts parts;
    if (facts_.is_recurrent && !facts_.is_hybrid) {
        parts.n_caches = 0;
    } else if (llama_model_n_swa(model_.get()) > 0) {
        parts.n_caches = 2;
    }
    parts.has_running_state = facts_.is_recurrent || facts_.is_hybrid;
    return problem_of_slot_file(path, capacity, parts);
}

std::size_t LlamaContext::load_file(SequenceId sequence, const std::string& path, std::size_t capacity,
                                    std::vector<Token>& tokens) {
    fresh_rows_[static_cast<std::size_t>(sequence)] = 0;
    tokens.resize(capacity);
    std::size_t count = 0;
    const std::size_t read =
        llama_state_seq_load_file(context_.get(), path.c_str(), sequence, tokens.data(), capacity, &count);
    tokens.resize(read == 0 ? 0 : std::min(count, capacity));
    return read;
}

void LlamaContext::set_adapters(std::span<const AdapterScale> scales) {
    wanted_.clear();
    for (const AdapterScale& scale : scales) {
        const bool is_known =
            scale.adapter >= 0 && static_cast<std::size_t>(scale.adapter) < adapters_.size();
        if (is_known && scale.scale != 0.0F) wanted_.push_back(scale);
    }
    if (wanted_ == applied_) return;
    std::vector<llama_adapter_lora*> handles;
    std::vector<float> factors;
    for (const AdapterScale& scale : wanted_) {
        handles.push_back(adapters_[static_cast<std::size_t>(scale.adapter)]);
        factors.push_back(scale.scale);
    }
    llama_set_adapters_lora(context_.get(), handles.data(), handles.size(), factors.data());
    applied_ = wanted_;
}

void LlamaContext::clear() {
    if (memory_ != nullptr) llama_memory_clear(memory_, true);
}

bool LlamaContext::probe_removal(Token token) {
    if (memory_ == nullptr) {
        facts_.removal = Removal::none;
        return false;
    }
    if (facts_.n_rs_seq > 0) {
        facts_.removal = Removal::recurrent;
        return false;
    }
    const BatchRow rows[] = {{token, 0, 0, false}, {token, 1, 0, true}};
    if (decode(rows) != 0) {
        facts_.removal = Removal::none;
        clear();
        return false;
    }
    facts_.removal = remove(0, 1, end_position) ? Removal::partial : Removal::full;
    llama_synchronize(context_.get());
    // Freed as after any answer: writing over a whole cache takes longer than the probe.
    llama_memory_clear(memory_, false);
    return true;
}

void LlamaContext::probe_backend_sampler() {
    const SamplerHandle chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    llama_sampler_chain_add(chain.get(), llama_sampler_init_top_k(1));
    facts_.backend_sampler = llama_set_sampler(context_.get(), 0, chain.get());
    llama_set_sampler(context_.get(), 0, nullptr);
}

}  // namespace paddock
