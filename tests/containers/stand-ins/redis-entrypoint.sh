#!/bin/sh
# Stand-in for the entry point of redis: drops root privileges before it starts the server.
set -e
if [ "${1#-}" != "$1" ]; then set -- redis-server "$@"; fi
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . \! -user redis -exec chown redis '{}' +
  exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
exec "$@"
