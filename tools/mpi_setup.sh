#!/bin/sh
# Install what mpirun jobs need on the embedded AWS: Open MPI, an SSH server that it starts for each
# simulated host (never on this machine's own network), and mpi4py in .venv. Debian or Ubuntu, root.
set -eu

cd "$(dirname "$0")/.."
packages="openmpi-bin libopenmpi-dev openssh-client openssh-server iproute2 util-linux"

if [ "$(uname -s)" != Linux ] || ! command -v apt-get >/dev/null; then
  echo "mpirun jobs run on Debian or Ubuntu only: $packages" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "root is needed, to install $packages and to make the hosts' namespaces" >&2
  exit 1
fi

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
if [ -n "$missing" ]; then
  # Debian starts a server that is installed; nobody asked for one on this machine.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
  fi
  apt-get update -qq
  # One word per package.
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
  # policy-rc.d holds the server back now, not at the next boot.
  case "$missing" in
    *openssh-server*) ! command -v systemctl >/dev/null || systemctl disable ssh.service ssh.socket 2>/dev/null || true ;;
  esac
fi
.venv/bin/python -c 'import mpi4py' 2>/dev/null ||
  .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check mpi4py==4.1.2
mpirun --version | head -1
