#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests, getting one if there is none:
# from PATH, else Debian's package (as root), else Playwright's own. Fails with one sentence; never skips.
set -euo pipefail
python=${1:-python3}

from_path() {
    local name
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" && return 0
    done
    return 1
}

from_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    {
        apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
    } >&2 </dev/null || return 1
    from_path
}

from_playwright() {
    "$python" -m playwright install chromium >&2 </dev/null || return 1
    "$python" -c 'from playwright.sync_api import sync_playwright as start
with start() as playwright:
    print(playwright.chromium.executable_path)'
}

from_path || from_debian || from_playwright || {
    echo "No Chromium for the browser tests: install one (chromium or google-chrome on PATH) and run make test again." >&2
    exit 1
}
