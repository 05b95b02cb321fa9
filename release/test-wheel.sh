#!/bin/sh
# Installs the wheel of this machine into a fresh environment and runs the package's tests there, without Rust:
#   test-wheel.sh WHEELS ENVIRONMENT [PYTHON]
set -eu
wheels=$1 environment=$2 python=${3:-python3}
wheel=$(find "$wheels" -name "lpgnn-*manylinux*$(uname -m).whl" | head -n 1)
test -n "$wheel" || { echo "$wheels has no wheel for this machine: run make wheels" >&2; exit 1; }
rm -rf "$environment"
"$python" -m venv "$environment"
# Nothing of the caller's environment but the standard tools; pip's own settings may name a mirror.
# shellcheck disable=SC2046 # each of these settings is an argument of its own
alone() { env -i HOME="$environment" PATH="$environment/bin:/usr/bin:/bin" LANG=C.UTF-8 $(env | grep -E '^(PIP_[A-Z_]*|LPGNN_SHARED)=' || true) "$@"; }
if alone sh -c 'command -v cargo || command -v rustc'; then
    echo "there is Rust in /usr/bin or /bin, so this would prove nothing" >&2
    exit 1
fi
alone "$environment/bin/pip" install --quiet --only-binary :all: "${wheel}[test]"
alone "$environment/bin/python" -c 'import lpgnn, sys; assert lpgnn.__file__.startswith(sys.prefix), lpgnn.__file__; print("lpgnn", lpgnn.__version__)'
alone "$environment/bin/python" -m pytest -q -p no:cacheprovider "$(dirname "$0")/../crates/lpgnn-python"
