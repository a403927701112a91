// Reads the lookup caches that llama.cpp's `lookup-create` and `lookup` write (11 §6.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/speculation/ngram_counts.h"

namespace paddock {

/// Adds what is in the file to `counts`. Tells, in words that go on after its name, that it isn't a regular
/// file, can't be read, is no such cache, is larger than 2 GiB or holds tokens that a vocabulary of `n_vocab`
/// doesn't have, and what to do; `counts` then holds a part of it. An empty file is a cache without n-grams.
///
/// No header; records up to the end of the file, every number 32 bits in this machine's byte order: four
/// tokens of the n-gram, filled up with -1; how many different followers; for each its token and its count.
std::optional<std::string> problem_of_lookup_file(const std::string& path, std::int32_t n_vocab,
                                                  NgramCounts& counts);

}  // namespace paddock
