#!/bin/sh
# Make .venv, or bring it up to date: every extra, under constraints.txt.
#
#   PYTHON=...  the interpreter to build on (3.11 or newer); found when not given
#   EXTRAS=...  the extras to install
set -eu

cd "$(dirname "$0")/.."
venv=.venv
marker=$venv/.installing
extras=${EXTRAS:-airflow,aws,local,pictures,demo,dev}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python3.13 python3.12; do
    # Tried, not only looked up: a version manager's shim exists for versions that do not run.
    if new_enough "$candidate"; then echo "$candidate"; return; fi
  done
  echo "orchestration needs Python 3.11 or newer; name one: make PYTHON=/path/to/python" >&2
  return 1
}

# A set-up that was cut off leaves its marker; what it installed cannot be trusted. A checkout that
# was moved or lost its interpreter has a pip that does not answer or that lives elsewhere.
usable() {
  [ ! -e "$marker" ] && new_enough "$venv/bin/python" &&
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
    [ "$("$venv/bin/python" -c 'import os, sys; print(os.path.realpath(sys.prefix))')" = \
      "$(cd "$venv" && pwd -P)" ] &&
    [ "$(cat "$venv/.home" 2>/dev/null)" = "$(pwd -P)" ]
}

if ! usable; then
  python=$(find_python)
  echo "Creating $venv with $("$python" --version)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  pwd -P > "$venv/.home"
fi

touch "$marker"
echo "Installing orchestration[$extras] (a minute or two the first time)"
# -qq: pip warns once per package and index that does not hold it. Bytecode is compiled for what is
# imported, when it is imported: most of what Airflow brings never is.
pip() { "$venv/bin/python" -m pip "$@" -qq --no-compile --no-input --disable-pip-version-check; }
# The pip that Python 3.11 came with takes three times as long, and works too.
pip install --upgrade 'pip>=26' || true
pip install --constraint constraints.txt --editable ".[$extras]"
rm -f "$marker"
touch "$venv/.installed"
