#!/usr/bin/env bash
# Installs what `make quickstart` (run) or `make test` (test) needs from Debian's or Ubuntu's packages, when it is not
# there. Without root it says what to install.
set -euo pipefail

have_postgres() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }

missing=()
have_postgres || missing+=(postgresql)
[ -x /usr/bin/python3 ] || missing+=(python3)
if [ "${1:-run}" = test ]; then
  [ -x /usr/bin/openstack ] || missing+=(python3-openstackclient)
  dpkg-query -W -f='${Status}' python3-tackerclient 2>/dev/null | grep -q 'install ok' || missing+=(python3-tackerclient)
  command -v gcc >/dev/null || missing+=(gcc libc6-dev)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "Missing: ${missing[*]}. Run: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
command -v apt-get >/dev/null || { echo "Missing: ${missing[*]}, and this is no Debian or Ubuntu: install them by hand." >&2; exit 1; }
echo "Installing ${missing[*]} ..."
export DEBIAN_FRONTEND=noninteractive
# The database is run by vnfm itself: no cluster of the distribution's is to be made.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
log=$(mktemp)
if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  exit 1
fi
rm -f "$log"
