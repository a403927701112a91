#include "llama/context_request.h"

#include <algorithm>

#include "llama/log.h"
#include "llama/names.h"
#include "llama/threads.h"

namespace paddock {
namespace {

void warn(const std::string& text) { log_line(LogLevel::warning, "warning: " + text); }

std::int32_t capped_slot_context(std::int32_t n_ctx_slot, std::int32_t n_ctx_train) {
    if (n_ctx_train <= 0 || n_ctx_slot <= n_ctx_train) return n_ctx_slot;
    warn("the slot context of " + std::to_string(n_ctx_slot) + " tokens is larger than the " +
         std::to_string(n_ctx_train) + " that the model was trained with; it is capped");
    return n_ctx_train;
}

void warn_of_adjustments(const EngineParams& params, const ContextFacts& facts, std::int32_t n_swa_model) {
    if (params.context_shift && !facts.can_shift)
        warn("the model's memory can't shift; context shift is off");
    if (params.swa_full && n_swa_model == 0) warn("the model has no sliding window; swa_full is off");
    if (params.cache_idle_slots && params.cache_ram_mib == 0) {
        warn("cache_idle_slots needs the prompt cache (cache_ram_mib); it is off");
    }
}

/// Sequences for side chains. Where memory is not shared by all sequences they would take room of their own.
std::int32_t n_branch_ids_of(const EngineParams& params) {
    const SpeculationParams& wanted = params.speculation;
    if (wanted.branch_budget <= 0 || !params.kv_unified || !makes_side_chains(wanted)) return 0;
    const auto n_max = static_cast<std::int32_t>(llama_max_parallel_sequences());
    return std::clamp(n_max - params.n_parallel, 0, wanted.branch_seqs);
}

/// Rows of a batch that give logits: for each slot the newest token and a draft behind it, or every one with
/// embeddings. Newer releases also want to know how many of them one slot may have; 0: all.
template <typename ContextParams>
void set_outputs(const EngineParams& params, ContextParams& wanted) {
    const std::int32_t n_per_slot = 1 + longest_draft(params.speculation) + params.speculation.branch_budget;
    wanted.n_outputs_max = static_cast<std::uint32_t>(
        wanted.embeddings ? params.n_batch : std::min(params.n_batch, params.n_parallel * n_per_slot));
    if constexpr (requires { wanted.n_outputs_max_per_seq; }) {
        wanted.n_outputs_max_per_seq = wanted.embeddings ? 0 : static_cast<std::uint32_t>(n_per_slot);
    }
}

/// Releases without this field keep no copies of a running state.
template <typename ContextParams>
void set_snapshots(const EngineParams& params, ContextParams& wanted) {
    if constexpr (requires { wanted.n_rs_seq; }) {
        wanted.n_rs_seq = static_cast<std::uint32_t>(wanted_snapshots(params.speculation));
    }
}

/// Found by the type of its argument, so that a header without the function is read, too.
template <typename LibraryContext>
std::int32_t snapshots_of(const LibraryContext* context) {
    if constexpr (requires { llama_n_rs_seq(context); }) {
        return static_cast<std::int32_t>(llama_n_rs_seq(context));
    } else {
        return 0;
    }
}
/// Whether several rows of a sequence could have candidates of the device's.
template <typename ContextParams>
constexpr bool knows_outputs_per_sequence = requires(ContextParams params) { params.n_outputs_max_per_seq; };

}  // namespace

llama_context_params context_params_of(const EngineParams& params) {
    llama_context_params wanted = llama_context_default_params();
    wanted.n_ctx = static_cast<std::uint32_t>(params.n_ctx);
    wanted.n_batch = static_cast<std::uint32_t>(params.n_batch);
    wanted.n_ubatch = static_cast<std::uint32_t>(params.n_ubatch);
    wanted.n_seq_max = static_cast<std::uint32_t>(params.n_parallel + n_branch_ids_of(params));
    wanted.n_threads = params.n_threads > 0 ? params.n_threads : physical_cores();
    wanted.n_threads_batch = params.n_threads_batch > 0 ? params.n_threads_batch : wanted.n_threads;
    wanted.rope_scaling_type = rope_scaling_of(params.rope_scaling);
    wanted.pooling_type = params.reranking ? LLAMA_POOLING_TYPE_RANK : pooling_of(params.pooling);
    wanted.attention_type = attention_of(params.attention);
    wanted.flash_attn_type = static_cast<llama_flash_attn_type>(params.flash_attention);
    wanted.rope_freq_base = params.rope_freq_base;
    wanted.rope_freq_scale = params.rope_freq_scale;
    wanted.yarn_ext_factor = params.yarn_ext_factor;
    wanted.yarn_attn_factor = params.yarn_attn_factor;
    wanted.yarn_beta_fast = params.yarn_beta_fast;
    wanted.yarn_beta_slow = params.yarn_beta_slow;
    wanted.yarn_orig_ctx = static_cast<std::uint32_t>(params.yarn_orig_ctx);
    wanted.type_k = cache_type_of(params.cache_type_k);
    wanted.type_v = cache_type_of(params.cache_type_v);
    wanted.embeddings = params.embeddings || params.reranking;
    set_outputs(params, wanted);
    set_snapshots(params, wanted);
    wanted.offload_kqv = params.offload_kqv;
    wanted.op_offload = params.op_offload;
    wanted.swa_full = params.swa_full;
    wanted.kv_unified = params.kv_unified;
    // Its own counters; the scheduler keeps better ones.
    wanted.no_perf = true;
    return wanted;
}

ContextFacts read_facts(const EngineParams& params, const llama_model* model, llama_context* context) {
    const llama_memory_t memory = llama_get_memory(context);
    ContextFacts facts;
    facts.n_ctx = static_cast<std::int32_t>(llama_n_ctx(context));
    facts.n_ctx_train = llama_model_n_ctx_train(model);
    facts.n_ctx_slot =
        capped_slot_context(static_cast<std::int32_t>(llama_n_ctx_seq(context)), facts.n_ctx_train);
    facts.n_batch = static_cast<std::int32_t>(llama_n_batch(context));
    facts.n_ubatch = static_cast<std::int32_t>(llama_n_ubatch(context));
    facts.n_embd_out = llama_model_n_embd_out(model);
    const std::int32_t n_swa_model = llama_model_n_swa(model);
    facts.n_swa = params.swa_full ? 0 : n_swa_model;
    facts.kv_unified = params.kv_unified;
    facts.has_memory = memory != nullptr;
    facts.can_shift = memory != nullptr && llama_memory_can_shift(memory);
    facts.is_recurrent = llama_model_is_recurrent(model);
    facts.is_hybrid = llama_model_is_hybrid(model);
    facts.n_rs_seq = snapshots_of(context);
    facts.backend_multi_output = knows_outputs_per_sequence<llama_context_params>;
    const llama_rope_type rope = llama_model_rope_type(model);
    facts.has_multi_positions = rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE;
    facts.n_branch_ids = static_cast<std::int32_t>(llama_n_seq_max(context)) - params.n_parallel;
    facts.pooling = llama_pooling_type(context);
    facts.n_classes = static_cast<std::int32_t>(llama_model_n_cls_out(model));
    warn_of_adjustments(params, facts, n_swa_model);
    return facts;
}

}  // namespace paddock
