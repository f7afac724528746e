#!/bin/sh
# Resolve every extra afresh in an environment of its own and pin what came out in constraints.txt.
set -eu

cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM

"${PYTHON:-python3.11}" -m venv "$scratch/venv"
python=$scratch/venv/bin/python
"$python" -m pip install -qq --upgrade "pip>=26"
"$python" -m pip install -qq --no-compile --no-input --disable-pip-version-check \
  --editable ".[airflow,aws,local,pictures,demo,docs,dev]"
"$python" -m pip check
{
  echo "# Every package of every extra, as resolved for Python 3.11. Made by \`make constraints\`."
  # A build's local label (+cpu) names where a wheel came from, not what it is.
  # On macOS the same release of XGBoost has another name.
  "$python" -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$//' \
    | awk -F== '$1 == "xgboost-cpu" { print "xgboost==" $2 } { print }'
} > "$scratch/constraints.txt"
if grep -nE '(@|://|file:)' "$scratch/constraints.txt"; then
  echo "constraints.txt may name versions only, no place" >&2
  exit 1
fi
cp "$scratch/constraints.txt" constraints.txt
