#!/bin/sh
# The tests of the native core are written with doctest, one header of Debian's package doctest-dev.
set -eu
if ! echo '#include <doctest/doctest.h>' | c++ -x c++ -fsyntax-only - 2>/dev/null; then
    echo 'make: doctest/doctest.h is missing; install it: apt install doctest-dev' >&2
    exit 1
fi
