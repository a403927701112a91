#include "core/slot_file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace paddock {

namespace {

constexpr std::uint32_t magic = 0x67677371;
constexpr std::uint32_t version = 2;
constexpr std::uint32_t max_streams = 1024;
constexpr std::uint32_t max_layers = 4096;
/// Of cells in models whose tokens have a place in a picture.
constexpr std::uint64_t place_bytes = 8;

class Problem : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws Problem where the file ends too soon.
class Reader {
  public:
    Reader(const std::string& path, std::uint64_t size) : file_(path, std::ios::binary), size_(size) {
        if (!file_) {
            throw Problem("can't be opened");
        }
    }

    template <typename Number>
    Number number() {
        Number value{};
        if (!file_.read(reinterpret_cast<char*>(&value), sizeof value)) {
            throw Problem("ends too soon");
        }
        return value;
    }
    std::uint32_t count() { return number<std::uint32_t>(); }

    std::uint64_t position() { return static_cast<std::uint64_t>(file_.tellg()); }
    void go_to(std::uint64_t position) {
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(position));
    }
    /// `n` times so many bytes.
    void skip(std::uint64_t n, std::uint64_t bytes) {
        const std::uint64_t left = size_ - position();
        if (bytes > 0 && n > left / bytes) {
            throw Problem("ends too soon");
        }
        go_to(position() + n * bytes);
    }

  private:
    std::ifstream file_;
    std::uint64_t size_;
};

void expect_position(std::int32_t position, std::uint32_t n_tokens) {
    if (position < 0 || static_cast<std::uint32_t>(position) >= n_tokens) {
        throw Problem("has a cell at position " + std::to_string(position) + ", but " +
                      std::to_string(n_tokens) + " tokens");
    }
}

/// Each at a position of its own.
void read_cells(Reader& file, std::uint32_t n_cells, std::uint32_t n_tokens, std::uint64_t bytes_between) {
    std::vector<bool> is_taken(n_tokens);
    for (std::uint32_t i = 0; i < n_cells; ++i) {
        const auto position = file.number<std::int32_t>();
        expect_position(position, n_tokens);
        if (is_taken[static_cast<std::size_t>(position)]) {
            throw Problem("has two cells at position " + std::to_string(position));
        }
        is_taken[static_cast<std::size_t>(position)] = true;
        if (const std::uint32_t n_sequences = file.count(); n_sequences != 1) {
            throw Problem("has a cell of " + std::to_string(n_sequences) + " sequences; one is allowed");
        }
        file.skip(1, bytes_between);
        file.skip(1, sizeof(std::int32_t));
    }
}

/// Whether cells have a place in a picture is not said.
void read_cells(Reader& file, std::uint32_t n_cells, std::uint32_t n_tokens) {
    const std::uint64_t start = file.position();
    try {
        read_cells(file, n_cells, n_tokens, 0);
    } catch (const Problem&) {
        file.go_to(start);
        try {
            read_cells(file, n_cells, n_tokens, place_bytes);
            return;
        } catch (const Problem&) {
            file.go_to(start);
        }
        throw;
    }
}

struct Cache {
    std::uint32_t n_cells = 0;
    /// Behind that of the cells.
    std::uint32_t n_streams_left = 0;
};

/// Up to the keys. `is_first`: the one that holds every token.
Cache read_cache(Reader& file, std::uint32_t n_tokens, bool is_first) {
    const std::uint32_t n_streams = file.count();
    if (n_streams == 0 || n_streams > max_streams) {
        throw Problem("has " + std::to_string(n_streams) + " streams of cells; 1 to " +
                      std::to_string(max_streams) + " are allowed");
    }
    std::uint32_t n_cells = 0;
    std::uint32_t n_left = n_streams;
    for (; n_left > 0 && n_cells == 0; --n_left) {
        n_cells = file.count();
    }
    if (n_cells > n_tokens || (is_first && n_cells != n_tokens)) {
        throw Problem("has " + std::to_string(n_cells) + " cells for " + std::to_string(n_tokens) +
                      " tokens");
    }
    read_cells(file, n_cells, n_tokens);
    return {n_cells, n_left};
}

/// Rows of all layers: of each layer its type, the bytes of a row and the rows.
void skip_rows(Reader& file, std::uint32_t n_layers, std::uint32_t n_cells) {
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        file.count();
        const auto row_bytes = file.number<std::uint64_t>();
        file.skip(n_cells, row_bytes);
    }
}

/// The same where a value of all cells comes before the next value.
void skip_columns(Reader& file, std::uint32_t n_layers, std::uint32_t n_cells) {
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        file.count();
        const std::uint32_t value_bytes = file.count();
        const std::uint32_t n_values = file.count();
        file.skip(std::uint64_t{n_values} * n_cells, value_bytes);
    }
}

/// Keys, and values unless the model works them out from the keys.
void skip_layers(Reader& file, std::uint32_t n_cells, bool has_values) {
    if (n_cells == 0) {
        return;
    }
    const bool is_by_column = file.count() != 0;
    const std::uint32_t n_layers = file.count();
    if (n_layers > max_layers) {
        throw Problem("has " + std::to_string(n_layers) + " layers; at most " + std::to_string(max_layers) +
                      " are allowed");
    }
    skip_rows(file, n_layers, n_cells);
    if (has_values && is_by_column) {
        skip_columns(file, n_layers, n_cells);
    } else if (has_values) {
        skip_rows(file, n_layers, n_cells);
    }
}

void read_running_state(Reader& file, std::uint32_t n_tokens) {
    const std::uint32_t n_cells = file.count();
    if (n_cells > n_tokens) {
        throw Problem("has " + std::to_string(n_cells) + " states for " + std::to_string(n_tokens) +
                      " tokens");
    }
    if (n_cells > 0) {
        expect_position(file.number<std::int32_t>(), n_tokens);
    }
}

/// The parts from number `at` on.
void read_parts(Reader& file, std::uint32_t n_tokens, const SlotFileParts& parts, std::size_t at) {
    if (at == parts.n_caches) {
        if (parts.has_running_state) {
            read_running_state(file, n_tokens);
        }
        return;
    }
    const Cache cache = read_cache(file, n_tokens, at == 0);
    const std::uint64_t start = file.position();
    const auto read_rest = [&](bool has_values) {
        file.go_to(start);
        skip_layers(file, cache.n_cells, has_values);
        for (std::uint32_t i = 0; i < cache.n_streams_left; ++i) {
            if (file.count() != 0) {
                throw Problem("has cells in two streams");
            }
        }
        read_parts(file, n_tokens, parts, at + 1);
    };
    try {
        read_rest(true);
    } catch (const Problem& problem) {
        // Whether there are values is not said.
        try {
            read_rest(false);
        } catch (const Problem&) {
            throw Problem(problem);
        }
    }
}

void read_header(Reader& file) {
    if (file.count() != magic) {
        throw Problem("is no slot file");
    }
    if (const std::uint32_t found = file.count(); found != version) {
        throw Problem("has version " + std::to_string(found) + " of slot files; " + std::to_string(version) +
                      " can be read");
    }
}

void read_file(Reader& file, std::size_t capacity, const SlotFileParts& parts) {
    read_header(file);
    const std::uint32_t n_tokens = file.count();
    if (n_tokens > capacity) {
        throw Problem("holds " + std::to_string(n_tokens) + " tokens; a slot has room for " +
                      std::to_string(capacity));
    }
    file.skip(n_tokens, sizeof(std::int32_t));
    read_parts(file, n_tokens, parts, 0);
}

}  // namespace

std::optional<std::string> problem_of_slot_file(const std::string& path, std::size_t capacity,
                                                const SlotFileParts& parts) {
    std::error_code error;
    // Others may never end, or block.
    if (!std::filesystem::is_regular_file(path, error)) {
        return error ? "can't be read: " + error.message() : std::string("is no regular file");
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) {
        return "can't be read: " + error.message();
    }
    try {
        Reader file(path, size);
        read_file(file, capacity, parts);
    } catch (const Problem& problem) {
        return problem.what();
    }
    return std::nullopt;
}

}  // namespace paddock
