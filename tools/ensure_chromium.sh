#!/bin/sh
# Make sure that the browser tests find a Chromium; called by `make test`.
# Installs Debian's package only where that needs no question: as root, with apt-get.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo 'installing chromium (for the browser tests)'
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null
    exit 0
fi

echo 'The browser tests need Chromium, and it was not found. Install it, on Debian and Ubuntu with' >&2
echo '    sudo apt-get install chromium' >&2
echo 'or run the tests that need neither browser nor engine: make quick' >&2
exit 1
