// What a slot does with its output row: a token, or an embedding (10 §12.4, §15.2, §16, §18).
#pragma once

#include <exception>
#include <span>

#include "core/decode_state.h"

namespace paddock {

/// Copies the prompt of a parent to the slots that wait for it; they then sample from the same row (10
/// §15.2).
void fan_out(DecodeState& state, Slot& parent);

/// Takes the slot's row of the window decoded last, `slot.window_row`; releases the slot when it is done.
void step(DecodeState& state, Slot& slot);

/// What follows `sampler->accept(token, true)` for one token, chosen at a row of these logits: it becomes the
/// pending one, its text goes to the client, and the loop guard and the tool-marker detector see it (10 §16).
/// The slot's list has to end with the token before it. False: the request has ended, and `finish` has to
/// follow once the list and memory are as they will stay.
bool emit_token(DecodeState& state, Slot& slot, Token token, std::span<const float> logits);

/// Ends a request whose sampler threw: the client's fault, or the engine's.
void fail_choice(DecodeState& state, Slot& slot, const std::exception& problem);

/// The last result of a request, and the slot's release.
void finish(DecodeState& state, Slot& slot);

}  // namespace paddock
