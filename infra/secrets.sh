#!/bin/sh
# Creates the secrets that docker-compose.yml reads from ./secrets, one file each. It keeps existing files: run it again
# after an upgrade that needs a new secret. Back up this folder, above all encryption_keys: without it, the signing keys
# and webhook secrets in the database cannot be decrypted.
set -eu

cd "$(dirname "$0")/.."
umask 077
mkdir -p secrets
# Containers run as other users and must be able to read the files; the mode of the folder keeps other users out.
chmod 0700 secrets

made() {
  [ -e "secrets/$1" ] && return 1
  printf '%s' "$2" > "secrets/$1"
  chmod 0444 "secrets/$1"
  echo "made secrets/$1"
}

for name in postgres_password redis_password turn_secret turn_admin_password media_api_secret media_admin_key grafana_password; do
  made "$name" "$(openssl rand -hex 24)" || true
done
made encryption_keys "k1:$(openssl rand -base64 32)" || true
# Derived from the secrets above. To use your own servers, write their URLs into these files first. The migration
# creates the roles of gateways and media agents with these passwords.
made database_url "postgresql://callplane:$(cat secrets/postgres_password)@postgres:5432/callplane" || true
for role in gateway media; do
  made "${role}_database_url" "$(sed -E "s#^(postgres(ql)?://)([^@/]*@)?#\\1callplane_$role:$(openssl rand -hex 24)@#" secrets/database_url)" || true
done
made redis_url "redis://:$(cat secrets/redis_password)@redis:6379" || true
