#include "llama/log.h"

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>

#include "core/printable.h"
#include "llama.h"

namespace paddock {
namespace {

/// Enough for the chain of causes that libllama prints when a load fails.
constexpr std::size_t max_kept_errors = 8;

std::atomic<int> verbosity{static_cast<int>(LogLevel::info)};

/// Guards the level that continuation texts follow, the line under way and the kept lines.
std::mutex mutex;
LogLevel last_level = LogLevel::info;
std::string open_line;
std::deque<std::string> kept_errors;

LogLevel level_of(ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_DEBUG: return LogLevel::trace;
        case GGML_LOG_LEVEL_WARN: return LogLevel::warning;
        case GGML_LOG_LEVEL_ERROR: return LogLevel::error;
        case GGML_LOG_LEVEL_CONT: return last_level;
        default: return LogLevel::info;
    }
}

/// Collects texts to whole lines, since one line may come in several calls.
void keep_error(const char* text) {
    for (const char* at = text; *at != '\0'; ++at) {
        if (*at != '\n') {
            open_line.push_back(*at);
            continue;
        }
        if (kept_errors.size() == max_kept_errors) kept_errors.pop_front();
        kept_errors.push_back(std::move(open_line));
        open_line.clear();
    }
}

bool is_shown(LogLevel level) { return static_cast<int>(level) <= verbosity.load(std::memory_order_relaxed); }

void forward(ggml_log_level raw_level, const char* text, void* /*user_data*/) {
    const std::lock_guard lock(mutex);
    last_level = level_of(raw_level);
    if (last_level == LogLevel::error || last_level == LogLevel::warning) keep_error(text);
    if (is_shown(last_level)) std::fputs(text, stderr);
}

}  // namespace

void set_log_verbosity(int value) { verbosity.store(value, std::memory_order_relaxed); }

void install_library_log() {
    static std::once_flag once;
    std::call_once(once, [] { llama_log_set(forward, nullptr); });
}

void log_line(LogLevel level, const std::string& text) {
    if (is_shown(level)) std::fprintf(stderr, "%s\n", printable(text).c_str());
}

std::vector<std::string> library_errors() {
    const std::lock_guard lock(mutex);
    return {kept_errors.begin(), kept_errors.end()};
}

void forget_library_errors() {
    const std::lock_guard lock(mutex);
    kept_errors.clear();
    open_line.clear();
}

}  // namespace paddock
