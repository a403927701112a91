// Rows of a draft with side chains (11 §12.6-12.7).
#pragma once

#include "core/batch.h"

namespace paddock {

/// Adds a row for each node of the slot's tree, in their order, all with outputs. The rows of root and main
/// path are the slot's own, as those of a flat draft.
void add_tree_rows(Batch& batch, Slot& slot);

}  // namespace paddock
