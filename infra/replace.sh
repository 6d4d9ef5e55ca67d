#!/bin/sh
# replace.sh <service>…: replaces the containers of Compose services, such as `api signaling`, by new ones with the
# current images and settings. It first starts as many new containers as there are old ones, waits until they are
# healthy, and then stops the old ones one by one. There are never fewer containers than before.
set -eu

# How long nginx may use an outdated address of a service (`valid` in nginx/upstreams.conf), plus one second.
KNOWN_SECONDS=6

[ $# -gt 0 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
cd "$(dirname "$0")/.."
for service in "$@"; do
  old=$(docker compose ps --quiet "$service")
  count=$(echo "$old" | grep -c .) || { echo "$service does not run" >&2; exit 1; }
  echo "$service: starting $count beside the $count that run"
  docker compose --progress quiet up --detach --no-deps --no-recreate --wait --scale "$service=$((count * 2))" "$service"
  for container in $old; do
    sleep "$KNOWN_SECONDS"
    echo "$service: stopping $(docker stop "$container")"
    docker rm "$container" >/dev/null
  done
done
