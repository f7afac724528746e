#!/bin/sh
# Make an environment with a SageMaker Python SDK and this package's core, or bring it up to date.
# The SDKs can't be installed beside Airflow.
#
#   tools/sdk_venv.sh REQUIREMENTS DIRECTORY
#
# What stands in a file beside the requirements whose name ends in -alone.txt is installed without
# its dependencies.
#
#   PYTHON=...  the interpreter to build on (3.11 or newer); python3.11 or python3 when not given
set -eu

if [ $# -ne 2 ]; then
  echo "usage: tools/sdk_venv.sh REQUIREMENTS DIRECTORY" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
requirements=$1
alone=${requirements%.txt}-alone.txt
venv=$2
marker=$venv/.installed

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python3.13 python3.12; do
    if new_enough "$candidate"; then echo "$candidate"; return; fi
  done
  echo "orchestration needs Python 3.11 or newer; name one: PYTHON=/path/to/python" >&2
  return 1
}

# What was asked for and where; another list, another place or an unfinished set-up start afresh.
[ -e "$alone" ] || alone=/dev/null
wanted=$(pwd -P; cat "$requirements" "$alone" pyproject.toml)
if new_enough "$venv/bin/python" && [ "$(cat "$marker" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

python=$(find_python)
echo "Creating $venv with $("$python" --version) for $requirements (a minute)"
rm -rf "$venv"
"$python" -m venv "$venv"
echo '*' > "$venv/.gitignore"  # linters and git pass by it, wherever it is
"$venv/bin/python" -m pip install -qq --no-compile --no-input --disable-pip-version-check \
  --requirement "$requirements" --editable .
[ "$alone" = /dev/null ] || "$venv/bin/python" -m pip install -qq --no-compile --no-input \
  --disable-pip-version-check --no-deps --requirement "$alone"
# A dependency of the SDKs installs its own tests as the package `tests`, in front of ours.
rm -rf "$venv"/lib/python3*/site-packages/tests
# Gigabytes that nothing here uses; an SDK that asks for it belongs on another list.
if "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "$requirements brought torch along" >&2
  exit 1
fi
printf '%s\n' "$wanted" > "$marker"
