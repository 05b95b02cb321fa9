#!/bin/sh
# Tests reports and the live page in Chromium: run.sh LPGNN FOLDER [--if-there]
#
# LPGNN is the program, FOLDER is where playwright-core is installed. Chromium is installed by apt where that is possible.
# With --if-there, nothing is installed but playwright-core, and what is missing skips the tests instead of failing them.
set -eu
program=$1 folder=$2 lenient=${3:-}
here=$(cd "$(dirname "$0")" && pwd)

missing() {
    if [ -n "$lenient" ]; then
        echo "skipped: tests in a browser, because $1"
        exit 0
    fi
    echo "tests in a browser need more: $1" >&2
    exit 1
}

find_chromium() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        if [ -n "$name" ] && command -v "$name"; then return 0; fi
    done
    return 1
}

command -v node >/dev/null && command -v npm >/dev/null || missing "Node.js 20 or newer and npm are not here"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || missing "Node.js is older than 20"
if ! chromium=$(find_chromium); then
    [ -z "$lenient" ] || missing "Chromium is not here"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq chromium >/dev/null || missing "apt-get cannot install chromium"
    else
        missing "Chromium is not here, and only root can install it by apt-get: install it, or tell where it is by CHROMIUM="
    fi
    chromium=$(find_chromium) || missing "apt-get has installed no chromium"
fi
mkdir -p "$folder"
if ! cmp -s "$here/package-lock.json" "$folder/node_modules/.lock"; then
    cp "$here/package.json" "$here/package-lock.json" "$folder"
    (cd "$folder" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent --no-audit --no-fund) || missing "npm cannot install playwright-core"
    cp "$here/package-lock.json" "$folder/node_modules/.lock"
fi
# A module is looked for beside the file that imports it.
cp "$here"/*.mjs "$folder"
LPGNN=$program CHROMIUM=$chromium exec node --test --test-reporter=spec "$folder/browser.test.mjs"
