#!/bin/sh
# Builds Janus into a folder (`build.sh /opt/janus`) from the source of Debian's package, as root on Debian 12 or 13:
# only the modules that Callplane uses, no data channels, Debian's hardening. infra/janus/Dockerfile runs this script, and
# so does `npm run test:image`. Without Docker: run it once, then start entrypoint.sh with JANUS_PATH=/opt/janus/bin/janus.
set -eu
prefix=${1:?name the folder to install into}
here=$(cd "$(dirname "$0")" && pwd)

# renovate: datasource=github-tags depName=meetecho/janus-gateway
VERSION=1.4.1
# Debian's archive has the file while a suite has this version; its snapshots keep every file.
FILE=pool/main/j/janus/janus_$VERSION+ds.orig.tar.xz
SHA256=fdfdd9b18419245cc9058912c22c8283c29c230cb07451bc9ece8a39cbdfd2b2
SNAPSHOT=http://snapshot.debian.org/archive/debian/20261030T000000Z

# Another user needs these packages installed.
if [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  # shellcheck disable=SC2046
  apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends $(cat "$here/build-packages") >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | grep '/debian/\?$' | head -n 1)
for site in "${mirror%/}" "$SNAPSHOT"; do
  /usr/lib/apt/apt-helper -qq download-file "$site/$FILE" "$work/janus.tar.xz" "SHA256:$SHA256" && break
done
mkdir "$work/janus"
tar -xJf "$work/janus.tar.xz" -C "$work/janus" --strip-components=1
cd "$work/janus"
# Debian's own patches change nothing that is built here.
for patch in "$here"/*.patch; do patch --strip=1 --fuzz=0 <"$patch"; done

quietly() { # COMMAND…: shows the output only if the command fails.
  "$@" >"$work/log" 2>&1 && return
  tail -n 50 "$work/log" >&2
  exit 1
}
export DEB_BUILD_MAINT_OPTIONS=hardening=+all
eval "$(dpkg-buildflags --export=sh)"
quietly ./autogen.sh
quietly ./configure --prefix="$prefix" --disable-docs --disable-data-channels --disable-turn-rest-api \
  --disable-all-plugins --enable-plugin-videoroom --disable-all-transports --enable-websockets \
  --disable-all-handlers --disable-all-loggers
quietly make --jobs="$(nproc)"
quietly make install-strip DESTDIR="$work/installed"

rm -rf "${prefix:?}/bin/janus" "$prefix/lib/janus"
mkdir -p "$prefix/bin" "$prefix/lib"
cp "$work/installed$prefix/bin/janus" "$prefix/bin/"
cp -R "$work/installed$prefix/lib/janus" "$prefix/lib/"
find "$prefix/lib/janus" -name '*.la' -delete
"$prefix/bin/janus" --version
