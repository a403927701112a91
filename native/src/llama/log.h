// What libllama says goes to stderr, unchanged, so that the manager can read it (10 §3.10).
#pragma once

#include <string>
#include <vector>

namespace paddock {

/// Levels as llama-server's `-lv` numbers them: lines of a higher level than the verbosity are dropped.
/// libllama's own debug lines count as `trace`.
enum class LogLevel : int { error = 1, warning = 2, info = 3, trace = 4, debug = 5 };

/// Lines of libllama and of this engine at `verbosity` or below reach stderr; default 3. Any thread.
void set_log_verbosity(int verbosity);

/// Sends libllama's lines here. Once for the process.
void install_library_log();

/// A line of this engine's own, without a line end. It may quote clients: control characters are escaped, so
/// that nobody writes lines of their own.
void log_line(LogLevel level, const std::string& text);

/// Error and warning lines of libllama since the last `forget_library_errors`, the newest few, oldest first.
std::vector<std::string> library_errors();
void forget_library_errors();

}  // namespace paddock
