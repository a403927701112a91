// Which way through a tree the target goes (11 §12.9).
#pragma once

#include "core/sampling.h"
#include "core/speculation/verification.h"

namespace paddock {

/// Always exact: side chains are the drafter's best guesses and no draws, so that taking whatever was sampled
/// keeps the distribution. Emits at least one token; the mode of `input` is not looked at. Throws what
/// Sampler::sample throws.
Verified verify_tree(Sampler& sampler, const VerifyInput& input);

/// The draft as a tree, or by `verify` when it has none.
Verified verify_draft(Sampler& sampler, const VerifyInput& input);

}  // namespace paddock
