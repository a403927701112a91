#include "llama/sampler_chain.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace paddock {
namespace {

/// More filters, or more strings to look up in the whole vocabulary, than any request has a use for.
constexpr std::size_t max_filters = 64;
constexpr std::size_t max_breakers = 64;
/// Tokens of changed logits, from each cause, up to which a reduction pays.
constexpr std::size_t max_touched = 128;
constexpr std::int32_t max_infill_candidates = 1024;
/// Below it logits divided by the temperature overflow; the choice is the greatest logit long before.
constexpr float least_temperature = 1e-20F;
/// Candidates that libllama's first mirostat estimates its exponent from, as in llama-server.
constexpr std::int32_t mirostat_candidates = 100;

struct FilterContext {
    const SamplingParams& params;
    const llama_vocab* vocab;
    std::uint32_t seed;

    std::size_t min_keep() const { return static_cast<std::size_t>(std::max(params.min_keep, 0)); }
};

float temperature_of(const SamplingParams& params) {
    return params.temperature > 0.0F ? std::max(params.temperature, least_temperature) : params.temperature;
}

/// Newer releases of libllama also want the size of the vocabulary.
template <typename Init>
llama_sampler* penalties_by(Init init, const FilterContext& of) {
    const SamplingParams& params = of.params;
    if constexpr (std::is_invocable_v<Init, std::int32_t, std::int32_t, float, float, float>) {
        return init(llama_vocab_n_tokens(of.vocab), params.repeat_last_n, params.repeat_penalty,
                    params.frequency_penalty, params.presence_penalty);
    } else {
        return init(params.repeat_last_n, params.repeat_penalty, params.frequency_penalty,
                    params.presence_penalty);
    }
}

llama_sampler* make_penalties(const FilterContext& of) {
    return penalties_by(llama_sampler_init_penalties, of);
}

/// Older releases of libllama also want the length of a context, the other limit of how far the filter looks
/// back: it gets one as long as the window.
template <typename Init>
llama_sampler* dry_by(Init init, const FilterContext& of, std::vector<const char*> breakers) {
    const SamplingParams& params = of.params;
    const std::int32_t window = params.dry_penalty_last_n;
    if constexpr (std::is_invocable_v<Init, const llama_vocab*, float, float, std::int32_t, std::int32_t,
                                      const char**, std::size_t>) {
        return init(of.vocab, params.dry_multiplier, params.dry_base, params.dry_allowed_length, window,
                    breakers.data(), breakers.size());
    } else {
        return init(of.vocab, window, params.dry_multiplier, params.dry_base, params.dry_allowed_length,
                    window, breakers.data(), breakers.size());
    }
}

llama_sampler* make_dry(const FilterContext& of) {
    std::vector<const char*> breakers;
    for (const std::string& breaker : of.params.dry_sequence_breakers) breakers.push_back(breaker.c_str());
    return dry_by(llama_sampler_init_dry, of, std::move(breakers));
}

bool is_off_penalties(const SamplingParams& params) {
    return params.repeat_last_n == 0 || (params.repeat_penalty == 1.0F && params.frequency_penalty == 0.0F &&
                                         params.presence_penalty == 0.0F);
}

/// A filter by the name that requests give it; adaptive_p has no part in the chain, it takes the place of the
/// selection.
struct Filter {
    std::string_view name;
    llama_sampler* (*make)(const FilterContext& of);
    /// Whether it leaves every candidate as it is.
    bool (*is_off)(const SamplingParams& params);
    /// Whether the greatest logit stays in, and stays the greatest.
    bool keeps_greatest;
};

constexpr Filter filters[] = {
    {"penalties", make_penalties, is_off_penalties, false},
    {"dry", make_dry,
     [](const SamplingParams& p) { return p.dry_multiplier == 0.0F || p.dry_penalty_last_n == 0; }, false},
    {"top_n_sigma",
     [](const FilterContext& of) { return llama_sampler_init_top_n_sigma(of.params.top_n_sigma); },
     [](const SamplingParams& p) { return p.top_n_sigma <= 0.0F; }, true},
    {"top_k", [](const FilterContext& of) { return llama_sampler_init_top_k(of.params.top_k); },
     [](const SamplingParams& p) { return p.top_k <= 0; }, true},
    {"typ_p",
     [](const FilterContext& of) { return llama_sampler_init_typical(of.params.typical_p, of.min_keep()); },
     [](const SamplingParams& p) { return p.typical_p >= 1.0F; }, false},
    {"top_p",
     [](const FilterContext& of) { return llama_sampler_init_top_p(of.params.top_p, of.min_keep()); },
     [](const SamplingParams& p) { return p.top_p >= 1.0F; }, true},
    {"min_p",
     [](const FilterContext& of) { return llama_sampler_init_min_p(of.params.min_p, of.min_keep()); },
     [](const SamplingParams& p) { return p.min_p <= 0.0F; }, true},
    {"xtc",
     [](const FilterContext& of) {
         return llama_sampler_init_xtc(of.params.xtc_probability, of.params.xtc_threshold, of.min_keep(),
                                       of.seed);
     },
     [](const SamplingParams& p) { return p.xtc_probability <= 0.0F || p.xtc_threshold > 0.5F; }, false},
    {"temperature",
     [](const FilterContext& of) {
         return llama_sampler_init_temp_ext(temperature_of(of.params), of.params.dynatemp_range,
                                            of.params.dynatemp_exponent);
     },
     [](const SamplingParams& p) { return p.temperature == 1.0F && p.dynatemp_range <= 0.0F; }, true},
    {"infill", [](const FilterContext& of) { return llama_sampler_init_infill(of.vocab); },
     [](const SamplingParams&) { return false; }, false},
};

constexpr std::string_view adaptive_p = "adaptive_p";

const Filter* find_filter(std::string_view name) {
    const auto* found = std::ranges::find(filters, name, &Filter::name);
    return found == std::end(filters) ? nullptr : found;
}

bool names(const SamplingParams& params, std::string_view name) {
    return std::ranges::find(params.samplers, name) != params.samplers.end();
}

void check_filters(const SamplingParams& params) {
    if (params.samplers.size() > max_filters) {
        throw std::invalid_argument("samplers: " + std::to_string(params.samplers.size()) +
                                    " names; at most " + std::to_string(max_filters) + " are allowed");
    }
    for (const std::string& name : params.samplers) {
        if (name == adaptive_p || find_filter(name) != nullptr) continue;
        std::string allowed;
        for (const Filter& filter : filters) allowed.append(filter.name).append(", ");
        throw std::invalid_argument("samplers: \"" + name + "\" is unknown; allowed are " +
                                    allowed.append(adaptive_p));
    }
}

/// It compares every candidate with every other, which takes minutes for a whole vocabulary.
void check_infill(const SamplingParams& params) {
    const auto infill = std::ranges::find(params.samplers, "infill");
    if (infill == params.samplers.end()) return;
    const bool has_few = params.top_k > 0 && params.top_k <= max_infill_candidates &&
                         std::find(params.samplers.begin(), infill, "top_k") != infill;
    if (!has_few) {
        throw std::invalid_argument("samplers: \"infill\" needs \"top_k\" before it and a top_k of 1 to " +
                                    std::to_string(max_infill_candidates));
    }
}

void check_values(const SamplingParams& params) {
    const std::pair<const char*, float> values[] = {
        {"temperature", params.temperature},
        {"dynatemp_range", params.dynatemp_range},
        {"dynatemp_exponent", params.dynatemp_exponent},
        {"top_p", params.top_p},
        {"min_p", params.min_p},
        {"top_n_sigma", params.top_n_sigma},
        {"typical_p", params.typical_p},
        {"xtc_probability", params.xtc_probability},
        {"xtc_threshold", params.xtc_threshold},
        {"repeat_penalty", params.repeat_penalty},
        {"presence_penalty", params.presence_penalty},
        {"frequency_penalty", params.frequency_penalty},
        {"dry_multiplier", params.dry_multiplier},
        {"dry_base", params.dry_base},
        {"mirostat_tau", params.mirostat_tau},
        {"mirostat_eta", params.mirostat_eta},
        {"adaptive_target", params.adaptive_target},
        {"adaptive_decay", params.adaptive_decay},
    };
    for (const auto& [name, value] : values) {
        if (!std::isfinite(value))
            throw std::invalid_argument(std::string(name) + " has to be a finite number");
    }
    if (params.mirostat < 0 || params.mirostat > 2) {
        throw std::invalid_argument("mirostat is " + std::to_string(params.mirostat) +
                                    "; allowed are 0, 1 and 2");
    }
    if (params.dry_sequence_breakers.size() > max_breakers) {
        throw std::invalid_argument(
            "dry_sequence_breakers: " + std::to_string(params.dry_sequence_breakers.size()) +
            " strings; at most " + std::to_string(max_breakers) + " are allowed");
    }
}

/// -1, and everything that the slot could never hold, become the whole slot.
std::int32_t window_of(std::int32_t asked, std::int32_t n_ctx_slot) {
    if (asked < 0) return n_ctx_slot;
    return std::min(asked, n_ctx_slot);
}

void resolve_biases(SamplingParams& params, const VocabularyFacts& vocabulary) {
    std::erase_if(params.logit_bias,
                  [&](const auto& bias) { return bias.first < 0 || bias.first >= vocabulary.size; });
    for (const auto& [token, bias] : params.logit_bias) {
        if (std::isnan(bias) || (std::isinf(bias) && bias > 0.0F)) {
            throw std::invalid_argument("logit_bias: the bias of token " + std::to_string(token) +
                                        " has to be a finite number, or false to forbid it");
        }
    }
    if (!params.ignore_eos) return;
    for (const Token token : vocabulary.ends) params.logit_bias.emplace_back(token, -INFINITY);
}

void add(llama_sampler* chain, llama_sampler* sampler) {
    if (sampler == nullptr) throw std::invalid_argument("the sampling parameters make no sampler");
    llama_sampler_chain_add(chain, sampler);
}

void add_biases(llama_sampler* chain, const SamplingParams& params, std::int32_t n_vocab) {
    if (params.logit_bias.empty()) return;
    std::vector<llama_logit_bias> biases;
    biases.reserve(params.logit_bias.size());
    for (const auto& [token, bias] : params.logit_bias) biases.push_back({.token = token, .bias = bias});
    add(chain,
        llama_sampler_init_logit_bias(n_vocab, static_cast<std::int32_t>(biases.size()), biases.data()));
}

void add_mirostat(llama_sampler* chain, const SamplingParams& params, std::int32_t n_vocab,
                  std::uint32_t seed) {
    add(chain, llama_sampler_init_temp(temperature_of(params)));
    if (params.mirostat == 1) {
        add(chain, llama_sampler_init_mirostat(n_vocab, seed, params.mirostat_tau, params.mirostat_eta,
                                               mirostat_candidates));
    } else {
        add(chain, llama_sampler_init_mirostat_v2(seed, params.mirostat_tau, params.mirostat_eta));
    }
}

}  // namespace

SamplingParams resolved(SamplingParams params, const VocabularyFacts& vocabulary, std::int32_t n_ctx_slot) {
    check_filters(params);
    check_infill(params);
    check_values(params);
    params.repeat_last_n = window_of(params.repeat_last_n, n_ctx_slot);
    params.dry_penalty_last_n = window_of(params.dry_penalty_last_n, n_ctx_slot);
    resolve_biases(params, vocabulary);
    return params;
}

std::uint32_t seed_of(std::int64_t seed, std::uint32_t offset) {
    // libllama takes this value as an order to throw dice itself.
    constexpr std::uint32_t random_mark = LLAMA_DEFAULT_SEED;
    const bool is_random = seed < 0 || seed == random_mark;
    const std::uint32_t base = is_random ? std::random_device{}() : static_cast<std::uint32_t>(seed);
    const std::uint32_t result = base + offset;
    return result == random_mark ? 0 : result;
}

SamplerHandle make_chain(const SamplingParams& params, const VocabularyFacts& vocabulary,
                         std::uint32_t seed) {
    llama_sampler_chain_params chain_params = llama_sampler_chain_default_params();
    chain_params.no_perf = true;
    SamplerHandle chain(llama_sampler_chain_init(chain_params));

    add_biases(chain.get(), params, vocabulary.size);
    if (params.mirostat != 0) {
        add_mirostat(chain.get(), params, vocabulary.size, seed);
        return chain;
    }
    const FilterContext context{.params = params, .vocab = vocabulary.handle, .seed = seed};
    for (const std::string& name : params.samplers) {
        if (const Filter* filter = find_filter(name)) add(chain.get(), filter->make(context));
    }
    if (names(params, adaptive_p)) {
        add(chain.get(), llama_sampler_init_adaptive_p(params.adaptive_target, params.adaptive_decay, seed));
    } else {
        add(chain.get(), llama_sampler_init_dist(seed));
    }
    return chain;
}

Reduction reduction_of(const SamplingParams& params) {
    if (params.mirostat != 0 || names(params, adaptive_p) || params.logit_bias.size() > max_touched)
        return {};
    std::vector<const Filter*> active;
    for (const std::string& name : params.samplers) {
        const Filter* filter = find_filter(name);
        if (!filter->is_off(params)) active.push_back(filter);
    }

    Reduction reduction;
    auto next = active.begin();
    if (next != active.end() && (*next)->name == "penalties") {
        reduction.n_recent = static_cast<std::size_t>(params.repeat_last_n);
        if (reduction.n_recent > max_touched) return {};
        ++next;
    }
    if (next == active.end()) return {};
    const bool takes_greatest =
        params.temperature <= 0.0F && params.dynatemp_range <= 0.0F && names(params, "temperature");
    if (takes_greatest &&
        std::all_of(next, active.end(), [](const Filter* f) { return f->keeps_greatest; })) {
        reduction.n_best = 1;
        reduction.is_greedy = true;
    } else if ((*next)->name == "top_k") {
        reduction.n_best = static_cast<std::size_t>(params.top_k);
    } else {
        return {};
    }
    return reduction;
}

}  // namespace paddock
