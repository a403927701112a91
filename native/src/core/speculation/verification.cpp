#include "core/speculation/verification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace paddock {

namespace {

/// Below it the rest of a distribution is rounding, and drawing from it would be drawing noise.
constexpr double least_residual = 1e-9;

/// Probability of a drafted token where it was drawn; nothing when the draft does not say (11 §10.8).
std::optional<double> drafted_log_probability(const Draft& draft, std::size_t position) {
    if (position >= draft.candidates.size()) {
        return std::nullopt;
    }
    const auto& candidates = draft.candidates[position];
    const auto found = std::ranges::find(candidates, draft.tokens[position], &DraftCandidate::token);
    if (found == candidates.end() || !std::isfinite(found->log_probability) ||
        found->log_probability > 0.0F) {
        return std::nullopt;
    }
    return found->log_probability;
}

double probability_of(const std::vector<TokenChance>& chances, Token token) {
    const auto found = std::ranges::find(chances, token, &TokenChance::token);
    return found == chances.end() ? 0.0 : found->probability;
}

Token drawn(const std::vector<TokenChance>& chances, double total, double u) {
    double left = u * total;
    for (const TokenChance& chance : chances) {
        left -= chance.probability;
        if (left < 0.0) {
            return chance.token;
        }
    }
    const auto last = std::ranges::find_if(
        chances.rbegin(), chances.rend(), [](const TokenChance& chance) { return chance.probability > 0.0; });
    return last == chances.rend() ? chances.back().token : last->token;
}

/// What the target would choose more often than the drafter (11 §10.4).
Token replacement(const std::vector<TokenChance>& target, const std::vector<DraftCandidate>& drafter,
                  double u) {
    std::vector<TokenChance> residual = target;
    double total = 0.0;
    for (TokenChance& chance : residual) {
        const auto found = std::ranges::find(drafter, chance.token, &DraftCandidate::token);
        if (found != drafter.end()) {
            chance.probability -= std::exp(static_cast<double>(found->log_probability));
        }
        chance.probability = std::max(0.0, chance.probability);
        total += chance.probability;
    }
    return total < least_residual ? drawn(target, 1.0, u) : drawn(residual, total, u);
}

/// Logarithm of the sum of all exponentials, in one pass (11 §10.9).
double log_sum(std::span<const float> logits, double scale) {
    double greatest = std::numeric_limits<float>::lowest();
    double sum = 0.0;
    for (const float logit : logits) {
        const double x = logit * scale;
        if (x > greatest) {
            sum = sum * std::exp(greatest - x) + 1.0;
            greatest = x;
        } else {
            sum += std::exp(x - greatest);
        }
    }
    return greatest + std::log(sum);
}

class Walk {
  public:
    Walk(Sampler& sampler, const VerifyInput& input) : sampler_(sampler), input_(input) {}

    Verified run() {
        sampler_.use_whole_rows(input_.whole_rows);
        const auto n = input_.draft.tokens.size();
        for (std::size_t i = 0; i < n && !is_over_; ++i) {
            step(i);
        }
        if (!is_over_) {
            const auto logits = row(n);
            emit(sampler_.sample(logits), logits);
            ++result_.counts.bonus;
        }
        sampler_.use_whole_rows(false);
        // What a stop left unread says nothing about the draft.
        result_.n_main = result_.n_accepted;
        result_.n_covered = was_cut_ ? result_.n_examined : input_.draft.size();
        return result_;
    }

  private:
    std::span<const float> row(std::size_t index) const {
        return input_.logits(static_cast<std::int32_t>(index));
    }

    void step(std::size_t position) {
        const auto logits = row(position);
        const Token wanted = input_.draft.tokens[position];
        const std::optional<double> log_q = drafted_log_probability(input_.draft, position);
        Token token = wanted;
        bool is_accepted = false;
        if (input_.mode == VerifyMode::rejection && log_q.has_value() && sampler_.has_distribution()) {
            is_accepted = try_ratio(position, logits, *log_q, token);
        } else {
            token = sampler_.sample(logits);
            is_accepted = judge_sample(wanted, logits, log_q, token);
        }
        ++result_.n_examined;
        result_.n_accepted += is_accepted ? 1 : 0;
        emit(token, logits);
        if (!is_accepted) {
            is_over_ = true;
        } else if (!result_.goes_on || sampler_.blocks_speculation(input_.grammar_blocks)) {
            is_over_ = true;
            was_cut_ = true;
        }
    }

    bool try_ratio(std::size_t position, std::span<const float> logits, double log_q, Token& token) {
        const std::vector<TokenChance> target = sampler_.distribution(logits);
        const double p = probability_of(target, token);
        const double u = sampler_.draw();
        if (p > 0.0 && u < std::min(1.0, p / std::exp(log_q))) {
            ++result_.counts.prob_accept;
            return true;
        }
        token = replacement(target, input_.draft.candidates[position], sampler_.draw());
        ++result_.counts.reject;
        return false;
    }

    bool judge_sample(Token wanted, std::span<const float> logits, std::optional<double> log_q,
                      Token& token) {
        if (token == wanted) {
            ++result_.counts.exact;
            return true;
        }
        if (input_.mode == VerifyMode::exact) {
            ++result_.counts.reject;
            return false;
        }
        if (!log_q.has_value()) {
            ++result_.counts.no_prob;
            return false;
        }
        if (input_.mode == VerifyMode::match_first && sampler_.has_distribution() &&
            sampler_.draw() < ratio(logits, wanted, *log_q)) {
            token = wanted;
            ++result_.counts.prob_accept;
            return true;
        }
        ++result_.counts.reject;
        return false;
    }

    double ratio(std::span<const float> logits, Token token, double log_q) const {
        const auto index = static_cast<std::size_t>(token);
        if (token < 0 || index >= logits.size()) {
            return 0.0;
        }
        const double scale = input_.temperature > 0.0F ? 1.0 / input_.temperature : 1.0;
        const double log_p = logits[index] * scale - log_sum(logits, scale);
        return std::isfinite(log_p) ? std::min(1.0, std::exp(log_p - log_q)) : 0.0;
    }

    void emit(Token token, std::span<const float> logits) {
        sampler_.accept(token, true);
        ++result_.n_emitted;
        result_.goes_on = input_.emit(token, logits);
    }

    Sampler& sampler_;
    const VerifyInput& input_;
    Verified result_;
    bool is_over_ = false;
    bool was_cut_ = false;
};

}  // namespace

std::string_view name_of(VerifyMode mode) {
    switch (mode) {
        case VerifyMode::rejection: return "rejection";
        case VerifyMode::match_first: return "match-first";
        case VerifyMode::exact: break;
    }
    return "exact";
}

VerifyMode verify_mode_of(std::string_view name) {
    if (name == "rejection") {
        return VerifyMode::rejection;
    }
    return name == "match-first" ? VerifyMode::match_first : VerifyMode::exact;
}

VerifyMode mode_for(VerifyMode asked, const Draft& draft, const Sampler& sampler) {
    const bool says_chances = !draft.candidates.empty() && !draft.candidates.front().empty();
    return says_chances && sampler.has_distribution() ? asked : VerifyMode::exact;
}

Verified verify(Sampler& sampler, const VerifyInput& input) { return Walk(sampler, input).run(); }

}  // namespace paddock
