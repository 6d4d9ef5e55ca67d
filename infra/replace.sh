#!/bin/sh
# replace.sh <service>…: replaces the containers of Compose services, such as `api signaling`, by new ones with the
# current images and settings, and puts the old ones back if the new ones do not work. For each service:
#
#   1. Starts one new container outside the service's name, so that no request reaches it, and waits until it is healthy
#      and answers real requests. If it does not, removes it: nothing else has changed.
#   2. Starts as many new containers as there are old ones, and waits until they are healthy.
#   3. Stops the old ones, one by one, as long as all new ones stay healthy.
#   4. Removes the old ones. If a step before this one fails, starts the old ones again and removes the new ones.
set -eu

# How long nginx may use an outdated address of a service (`valid` in nginx/upstreams.conf), plus one second.
KNOWN_SECONDS=${REPLACE_KNOWN_SECONDS:-3}
# How long a new container may take to become healthy.
HEALTHY_SECONDS=${REPLACE_HEALTHY_SECONDS:-120}
# Between two tries of a new container that is healthy and answers with an error.
RETRY_SECONDS=${REPLACE_RETRY_SECONDS:-2}

[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
cd "$(dirname "$0")/.."

# Paths that a new container must answer with 2xx before it gets requests. The JWKS comes from the database.
paths_of() {
  case $1 in
    api) echo /livez /readyz /.well-known/jwks.json ;;
    *) echo /livez /readyz ;;
  esac
}

is_healthy() {
  [ "$(docker inspect --format '{{.State.Status}} {{.State.Health.Status}} {{.RestartCount}}' "$1")" = 'running healthy 0' ]
}

# Waits until a container is healthy, and checks its answers.
try_canary() { # <service> <container>
  waited=0
  until is_healthy "$2"; do
    [ "$waited" -lt "$HEALTHY_SECONDS" ] || { echo "$1: not healthy within $HEALTHY_SECONDS s" >&2; return 1; }
    [ "$(docker inspect --format '{{.State.Status}}' "$2")" = running ] || { echo "$1: does not stay up" >&2; return 1; }
    sleep 1
    waited=$((waited + 1))
  done
  # A container that is not ready for a moment, because the machine is overloaded, gets another chance.
  tries=5
  # shellcheck disable=SC2046 # one argument for each path
  until docker exec "$2" node /app/health-check.mjs $(paths_of "$1"); do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "$1: does not answer requests" >&2; return 1; }
    sleep "$RETRY_SECONDS"
  done
}

# Waits until the containers are healthy, then stops the old ones one by one.
change() { # <service> <count> <old containers>
  docker compose --progress quiet up --detach --no-deps --no-recreate --wait --wait-timeout "$HEALTHY_SECONDS" \
    --scale "$1=$(($2 * 2))" "$1" || return 1
  new=$(docker compose ps --quiet "$1" | grep -vxF "$3") || { echo "$1: no new container" >&2; return 1; }
  for container in $3; do
    sleep "$KNOWN_SECONDS"
    for other in $new; do
      is_healthy "$other" || { echo "$1: $other is no longer healthy" >&2; return 1; }
    done
    echo "$1: stopping $(docker stop "$container")"
  done
}

# Starts the old containers again, and removes all others of the service.
restore() { # <service> <old containers>
  echo "$1: putting the old containers back" >&2
  # shellcheck disable=SC2086 # one argument for each container
  docker start $2 >/dev/null
  sleep "$KNOWN_SECONDS"
  for container in $(docker compose ps --all --quiet "$1" | grep -vxF "$2"); do
    docker stop "$container" >/dev/null
    docker rm "$container" >/dev/null
  done
}

for service in "$@"; do
  old=$(docker compose ps --quiet "$service")
  count=$(echo "$old" | grep -c .) || { echo "$service does not run" >&2; exit 1; }
  echo "$service: trying one container outside of the load balancer"
  # A container of `run` does not get the service's name.
  canary=$(docker compose --progress quiet run --detach --no-deps "$service")
  verdict=0
  try_canary "$service" "$canary" || verdict=1
  [ "$verdict" = 0 ] || docker logs --tail 20 "$canary" >&2
  docker stop "$canary" >/dev/null
  docker rm "$canary" >/dev/null
  [ "$verdict" = 0 ] || { echo "$service: nothing was changed" >&2; exit 1; }
  echo "$service: starting $count beside the $count that run"
  if ! change "$service" "$count" "$old"; then
    restore "$service" "$old"
    exit 1
  fi
  # shellcheck disable=SC2086 # one argument for each container
  docker rm $old >/dev/null
done
