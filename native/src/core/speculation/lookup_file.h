// Reads the lookup caches that llama.cpp's `lookup-create` and `lookup` write (11 §6.6).
#pragma once

#include <string>

#include "core/speculation/ngram_counts.h"

namespace paddock {

/// Adds what is in the file to `counts`. False when it isn't a regular file, can't be read, is no such cache
/// or is larger than 2 GiB; `counts` then holds a part of it. An empty file is a cache without n-grams.
///
/// No header; records up to the end of the file, every number 32 bits in this machine's byte order: four
/// tokens of the n-gram, filled up with -1; how many different followers; for each its token and its count.
bool read_lookup_file(const std::string& path, NgramCounts& counts);

}  // namespace paddock
