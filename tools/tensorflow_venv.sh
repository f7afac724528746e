#!/bin/sh
# Make an environment that stands for AWS's TensorFlow containers: TensorFlow for CPUs with the
# toolkit that starts its scripts (parameter servers, TF_CONFIG). A gigabyte, for tests/execution.
#
#   tools/tensorflow_venv.sh [DIRECTORY]
#
#   PYTHON=...  the interpreter to build on (3.11 or 3.12); python3.11 or python3.12 when not given
set -eu

cd "$(dirname "$0")/.."
venv=${1:-.venv-tensorflow}
marker=$venv/.installed
# The last toolkit pins sagemaker-training and numpy to versions that no TensorFlow of today runs
# with, so its own pins are left out; it calls nothing that changed since.
toolkit="sagemaker-tensorflow-training==20.5.0"
packages="tensorflow-cpu==2.21.0 sagemaker-training==5.1.4 setuptools<81"

suits() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; }

find_python() {
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3; do
    if suits "$candidate"; then echo "$candidate"; return; fi
  done
  echo "this environment needs Python 3.11 or 3.12; name one: PYTHON=/path/to/python" >&2
  return 1
}

wanted="$(pwd -P) $toolkit $packages"
if suits "$venv/bin/python" && [ "$(cat "$marker" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

python=$(find_python)
echo "Creating $venv with $("$python" --version): TensorFlow and its toolkit (some minutes)"
rm -rf "$venv"
"$python" -m venv "$venv"
echo '*' > "$venv/.gitignore"  # linters and git pass by it, wherever it is
install() { "$venv/bin/python" -m pip install -qq --no-input --disable-pip-version-check "$@"; }
# One word per package.
# shellcheck disable=SC2086
install $packages
install --no-deps "$toolkit"
"$venv/bin/python" -c 'import sagemaker_training, tensorflow'
printf '%s\n' "$wanted" > "$marker"
