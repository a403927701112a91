// Keeps grammars that would end the process away from libllama, whose parser recurses without a limit.
#pragma once

#include <string_view>

namespace paddock {

/// Throws std::invalid_argument on a grammar too long, too deeply nested or of too many rules. In how many
/// ways a grammar reads a text is not looked at: whoever takes grammars from strangers checks that before.
void check_grammar_limits(std::string_view grammar);

}  // namespace paddock
