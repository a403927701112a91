// One way to guess what comes next (11 §4). Used by the decode thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/draft.h"

namespace paddock {

class Drafter {
  public:
    virtual ~Drafter() = default;

    virtual DraftType type() const = 0;
    /// Shortest draft of its own that is of use, and longest; a model drafter's are the request's (11 §8.2).
    virtual std::int32_t own_min() const { return 0; }
    virtual std::int32_t own_max() const = 0;

    /// The slot enters generation; `tokens` is the text in its memory (11 §4.3).
    virtual void begin(SequenceId slot, std::span<const Token> tokens) = 0;
    /// A draft for each request, in their order; an empty one where it has none.
    virtual std::vector<Draft> draft(std::span<const DraftRequest> requests) = 0;
    /// Of the `n_drafted` tokens of a draft that were looked at the first `n_accepted` were right; what was
    /// cut off, or stands behind the end of the text, is not among them. `own`: it was this drafter's.
    virtual void accepted(SequenceId slot, std::int32_t n_drafted, std::int32_t n_accepted, bool own) = 0;
    /// The slot forgets everything.
    virtual void reset(SequenceId slot) = 0;
    /// Whether it keeps working; a drafter that failed for good is dropped with `reason`.
    virtual bool is_usable() const { return true; }
    virtual const char* reason() const { return ""; }
};

}  // namespace paddock
