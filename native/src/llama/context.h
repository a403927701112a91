// A decoding context of libllama.
#pragma once

#include "core/context.h"
#include "llama/handles.h"

namespace paddock {

class LlamaContext final : public Context {
  public:
    /// `adapters` by their ids; they belong to the model.
    LlamaContext(ModelHandle model, ContextHandle context, ContextFacts facts,
                 std::vector<llama_adapter_lora*> adapters);

    const ContextFacts& facts() const override { return facts_; }

    std::int32_t decode(std::span<const BatchRow> rows) override;
    std::span<const float> logits(std::int32_t index) override;
    std::span<const float> row_embedding(std::int32_t index) override;
    std::span<const float> sequence_embedding(SequenceId sequence) override;
    void set_embeddings(bool on) override;

    bool remove(SequenceId sequence, Position from, Position to) override;
    void shift(SequenceId sequence, Position from, Position to, Position delta) override;
    void copy(SequenceId from, SequenceId to, Position begin, Position end) override;
    Position position_min(SequenceId sequence) override;
    Position position_max(SequenceId sequence) override;

    std::size_t state_size(SequenceId sequence, bool partial) override;
    std::vector<std::byte> read_state(SequenceId sequence, bool partial) override;
    bool write_state(SequenceId sequence, std::span<const std::byte> state, bool partial) override;

    std::size_t save_file(SequenceId sequence, const std::string& path,
                          const std::vector<Token>& tokens) override;
    std::optional<std::string> problem_of_file(const std::string& path, std::size_t capacity) override;
    std::size_t load_file(SequenceId sequence, const std::string& path, std::size_t capacity,
                          std::vector<Token>& tokens) override;

    void set_adapters(std::span<const AdapterScale> scales) override;

    llama_context* handle() { return context_.get(); }
    /// Forgets everything in memory.
    void clear();
    /// Finds out how the memory lets go of single tokens (10 §3.5) and lets go of them. True where that took
    /// a decode, which has paged the weights in.
    bool probe_removal(Token token);
    /// Finds out whether the device could pick the best tokens of a row (11 §2).
    void probe_backend_sampler();

  private:
    bool can_step_back(SequenceId sequence, Position from) const;
    void note_rows(std::span<const BatchRow> rows);

    ModelHandle model_;
    ContextHandle context_;
    ContextFacts facts_;
    llama_memory_t memory_;
    std::size_t n_vocab_;
    bool embeddings_on_ = false;

    void fill_sequences(std::span<const BatchRow> rows);

    /// One batch for all decodes, of n_batch rows: its parts are only filled, never allocated again.
    std::vector<llama_token> tokens_;
    std::vector<llama_pos> positions_;
    std::vector<std::int32_t> sequence_counts_;
    /// Of all rows, one row's behind the other's; longer than the batch while drafts have side chains.
    std::vector<llama_seq_id> sequences_;
    std::vector<llama_seq_id*> sequence_pointers_;
    std::vector<std::int8_t> outputs_;

    /// Rows of each sequence in the last decode. Copies of a running state are of these; further back
    /// libllama would take what other rows left there.
    std::vector<std::int32_t> fresh_rows_;

    std::vector<llama_adapter_lora*> adapters_;
    std::vector<AdapterScale> applied_;
    /// Room for the wanted ones of a call.
    std::vector<AdapterScale> wanted_;
};

}  // namespace paddock
