// What the drafters that only look at earlier tokens have in common (11 §6): they draft slot by slot, without
// candidates, and what they draft is bounded in one place. Decode thread only, as every drafter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/drafter.h"

namespace paddock {

class NgramDrafter : public Drafter {
  public:
    /// No draft is longer than its request's limit or holds a negative token: those stand for media, and end
    /// it, or its side chain.
    std::vector<Draft> draft(std::span<const DraftRequest> requests) final;

  protected:
    /// Fills `tokens`, which is empty. The limit of the request is at least 1; more than it wants is cut off.
    virtual void propose(const DraftRequest& request, std::vector<Token>& tokens) = 0;
    /// What else followed the pending token, after `propose` found something.
    virtual std::vector<SideChain> others(const DraftRequest& /*request*/) const { return {}; }
};

/// How many leading tokens of `known` are those of `tokens`. A list changes at its end only, except by
/// `begin`: with the same token at the end of what is known, nothing else is looked at.
std::size_t unchanged_length(std::span<const Token> known, std::span<const Token> tokens);

/// The same, with every token compared.
std::size_t common_length(std::span<const Token> known, std::span<const Token> tokens);

}  // namespace paddock
