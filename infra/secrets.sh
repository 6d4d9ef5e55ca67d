#!/bin/sh
# Makes the secrets that docker-compose.yml reads from ./secrets, each in a file of its own. What is there is kept: run
# it again after an upgrade that needs a new one. Back this folder up, encryption_keys above all: without it the signing
# keys and webhook secrets in the database cannot be read.
set -eu

cd "$(dirname "$0")/.."
umask 077
mkdir -p secrets
# Containers run as users of their own and must be able to read the files; the folder keeps everybody else out.
chmod 0700 secrets

made() {
  [ -e "secrets/$1" ] && return 1
  printf '%s' "$2" > "secrets/$1"
  chmod 0444 "secrets/$1"
  echo "made secrets/$1"
}

for name in postgres_password redis_password turn_secret media_api_secret media_admin_key grafana_password; do
  made "$name" "$(openssl rand -hex 24)" || true
done
made encryption_keys "k1:$(openssl rand -base64 32)" || true
# Out of the above. To use servers of your own, write their URLs into these files before.
made database_url "postgresql://callplane:$(cat secrets/postgres_password)@postgres:5432/callplane" || true
made redis_url "redis://:$(cat secrets/redis_password)@redis:6379" || true
