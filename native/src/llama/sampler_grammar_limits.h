// Keeps grammars that would end the process away from libllama, whose parser recurses without a limit.
#pragma once

#include <string_view>

namespace paddock {

/// Throws std::invalid_argument on a grammar too long, too deeply nested or of too many rules.
void check_grammar_limits(std::string_view grammar);

}  // namespace paddock
