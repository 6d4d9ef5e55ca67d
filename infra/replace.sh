#!/bin/sh
# replace.sh <service>…: replaces the containers of services of docker-compose.yml, such as `api signaling`, by ones of
# the present images and settings, so that there are never fewer of them than before: the new ones are started beside
# the old ones, and these are stopped one after the other when the new ones are healthy. As many run afterwards.
set -eu

# How long nginx may go by what it knew of a service (`valid` in nginx/upstreams.conf), and a second more.
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
