#!/bin/sh
# Fills in the configuration from the environment and starts Janus. awk reads the secrets from the environment and
# writes them to files of mode 0600, so that they appear in no command line.
set -eu
umask 077

# Secrets may come from files, as for the apps.
[ -z "${MEDIA_API_SECRET_FILE:-}" ] || MEDIA_API_SECRET=$(cat "$MEDIA_API_SECRET_FILE")
[ -z "${MEDIA_ADMIN_KEY_FILE:-}" ] || MEDIA_ADMIN_KEY=$(cat "$MEDIA_ADMIN_KEY_FILE")
: "${MEDIA_API_SECRET:?}" "${MEDIA_ADMIN_KEY:?}"
# The address that receives media. Janus cannot use loopback.
: "${JANUS_IP:?}"
export MEDIA_API_SECRET MEDIA_ADMIN_KEY JANUS_IP
export JANUS_PUBLIC_IP="${JANUS_PUBLIC_IP:-}"
export JANUS_KEEP_PRIVATE="${JANUS_PUBLIC_IP:+true}"
export JANUS_WS_IP="${JANUS_WS_IP:-127.0.0.1}"
export JANUS_WS_PORT="${JANUS_WS_PORT:-8188}"
export JANUS_RTP_PORTS="${JANUS_RTP_PORTS:-40000-41999}"
export JANUS_EVENT_LOOPS="${JANUS_EVENT_LOOPS:-$(nproc)}"
export JANUS_RUN="${JANUS_RUN:-/tmp/callplane-janus}"

case "$MEDIA_API_SECRET$MEDIA_ADMIN_KEY" in
  *[!A-Za-z0-9_-]*) echo 'MEDIA_API_SECRET and MEDIA_ADMIN_KEY may hold letters, digits, - and _ only' >&2; exit 1 ;;
esac

here=$(dirname "$0")
rm -rf "$JANUS_RUN"
mkdir -p "$JANUS_RUN/etc" "$JANUS_RUN/plugins" "$JANUS_RUN/transports" "$JANUS_RUN/events" "$JANUS_RUN/loggers"
for template in "$here"/*.jcfg; do
  awk '
    /^[ \t]*#/ { next }
    {
      while (match($0, /@[A-Z_]+@/)) {
        value = ENVIRON[substr($0, RSTART + 1, RLENGTH - 2)]
        if (value == "") next
        $0 = substr($0, 1, RSTART - 1) value substr($0, RSTART + RLENGTH)
      }
      print
    }
  ' "$template" > "$JANUS_RUN/etc/${template##*/}"
done

# The modules belong to the program. Debian keeps them in a folder named after the processor architecture.
program=${JANUS_PATH:-$(command -v janus)}
prefix=$(dirname "$(dirname "$(readlink -f "$program")")")
for library in "$prefix"/lib/*-linux-*/janus "$prefix/lib/janus" "$prefix/lib64/janus"; do
  [ -e "$library/plugins/libjanus_videoroom.so" ] && break
done
ln -s "$library/plugins/libjanus_videoroom.so" "$JANUS_RUN/plugins/"
ln -s "$library/transports/libjanus_websockets.so" "$JANUS_RUN/transports/"

"$program" -F "$JANUS_RUN/etc" -C "$JANUS_RUN/etc/janus.jcfg" &
janus=$!
trap 'kill -TERM "$janus"' TERM INT

# Stops a Janus that fails two checks in a row, so that the container or the unit starts again. The gateways have given up
# its calls by then. If VideoRoom hangs, SIGTERM does not end Janus.
(
  failures=0
  while sleep 5; do
    if "$here/healthcheck.sh"; then failures=0; else failures=$((failures + 1)); fi
    [ "$failures" -eq 2 ] || continue
    echo 'Janus does not answer, and is stopped.' >&2
    kill -TERM "$janus"
    sleep 5
    kill -KILL "$janus"
  done
) &
watch=$!

# A signal ends a wait before Janus ends.
while kill -0 "$janus" 2>/dev/null; do
  code=0
  wait "$janus" || code=$?
done
kill "$watch" 2>/dev/null || true
exit "$code"
