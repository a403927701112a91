#include "core/speculation/reduced_plan.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace paddock {

namespace {

/// More candidates than this are too many to hand over one by one.
constexpr std::int32_t max_k = 64;

constexpr std::string_view disabled = "disabled";
constexpr std::string_view not_block = "not-dflash";

struct Rule {
    std::string_view reason;
    bool (*holds)(const ReducedCase& of);
};

/// Rules 0 to 14, in their order.
constexpr auto refusals = std::to_array<Rule>({
    {disabled, [](const ReducedCase& of) { return of.is_disabled; }},
    {"tree", [](const ReducedCase& of) { return of.has_side_chains; }},
    {"rejection", [](const ReducedCase& of) { return of.mode != VerifyMode::exact; }},
    {"prob-reporting", [](const ReducedCase& of) { return of.n_probs > 0; }},
    {"grammar",
     [](const ReducedCase& of) {
         return !of.sampling.grammar.empty() || of.sampling.grammar_lazy ||
                !of.sampling.grammar_triggers.empty();
     }},
    {"logit-bias",
     [](const ReducedCase& of) { return !of.sampling.logit_bias.empty() || of.sampling.ignore_eos; }},
    {"penalties",
     [](const ReducedCase& of) {
         return of.sampling.repeat_penalty != 1.0F || of.sampling.frequency_penalty != 0.0F ||
                of.sampling.presence_penalty != 0.0F;
     }},
    {"dry",
     [](const ReducedCase& of) {
         return of.sampling.dry_multiplier != 0.0F && of.sampling.dry_penalty_last_n != 0;
     }},
    {"top-n-sigma", [](const ReducedCase& of) { return of.sampling.top_n_sigma >= 0.0F; }},
    {"xtc", [](const ReducedCase& of) { return of.sampling.xtc_probability > 0.0F; }},
    {"mirostat", [](const ReducedCase& of) { return of.sampling.mirostat != 0; }},
    {"adaptive", [](const ReducedCase& of) { return of.sampling.adaptive_target >= 0.0F; }},
    {"dynamic-temp", [](const ReducedCase& of) { return of.sampling.dynatemp_range > 0.0F; }},
    {"finite-reasoning-budget",
     [](const ReducedCase& of) { return of.sampling.reasoning.budget_tokens >= 0; }},
    {not_block, [](const ReducedCase& of) { return of.is_for_block_drafters; }},
});

ReducedPlan off(std::string_view reason) {
    return {
        .is_on = false, .k = 1, .reason = reason, .is_forbidden = reason == disabled || reason == not_block};
}

ReducedPlan on(std::string_view reason, std::int32_t k) {
    return {.is_on = true, .k = k, .reason = reason, .is_forbidden = false};
}

/// They cut by the probabilities of the whole row.
bool cuts_by_probability(const std::string& filter) {
    return filter == "top_p" || filter == "min_p" || filter == "typ_p";
}

}  // namespace

ReducedPlan plan_reduced(const ReducedCase& of) {
    const auto refusal = std::ranges::find_if(refusals, [&](const Rule& rule) { return rule.holds(of); });
    if (refusal != refusals.end()) {
        return off(refusal->reason);
    }
    const SamplingParams& sampling = of.sampling;
    if (sampling.temperature <= 0.0F) {
        return on("greedy", 1);
    }
    const auto top_k = std::ranges::find(sampling.samplers, "top_k");
    if (sampling.top_k <= 0 || top_k == sampling.samplers.end()) {
        return off("unbounded-top-k");
    }
    if (sampling.top_k > max_k) {
        return off("top-k-too-large");
    }
    if (std::any_of(sampling.samplers.begin(), top_k, cuts_by_probability)) {
        return off("sampler-order");
    }
    return on("top-k", sampling.top_k);
}

}  // namespace paddock
