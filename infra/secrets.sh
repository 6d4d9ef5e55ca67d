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
# The secret of the key RECORDINGS_S3_ACCESS_KEY_ID. Empty: recordings stay on this machine.
made recordings_s3_secret '' || true
# The URL of the HTTP proxy through which webhooks leave, with its password. Empty: they leave directly.
made webhook_proxy_url '' || true
# Derived from the secrets above. To use your own servers, write their URLs into these files first. The migration
# creates the roles of gateways and media agents with these passwords.
made database_url "postgresql://callplane:$(cat secrets/postgres_password)@postgres:5432/callplane" || true
for role in gateway media; do
  made "${role}_database_url" "$(sed -E "s#^(postgres(ql)?://)([^@/]*@)?#\\1callplane_$role:$(openssl rand -hex 24)@#" secrets/database_url)" || true
done
# Each app logs in to Redis with a user of its own, whose rights infra/redis/users.acl has. A file redis_url names a Redis
# of your own.
redis_url=$(cat secrets/redis_url 2>/dev/null || echo redis://redis:6379)
for app in api signaling cleanup-worker recorder webhook-worker cli; do
  made "$(echo "$app" | tr - _)_redis_url" "$(sed -E "s#^(rediss?(\\+sentinel)?://)([^@/]*@)?#\\1callplane-$app:$(openssl rand -hex 24)@#" <<EOF
$redis_url
EOF
)" || true
done
hash() {
  printf '%s' "$1" | openssl dgst -sha256 -r | cut -d ' ' -f 1
}
# The file of users of Redis, with the hashes of their passwords. An upgrade may change their rights.
{
  echo "user default on #$(hash "$(cat secrets/redis_password)") ~* &* +@all"
  while read -r user; do
    app=$(echo "$user" | sed -E 's/^user callplane-([a-z-]+) .*/\1/')
    password=$(sed -E 's#^[^:]*://[^:]*:([^@]*)@.*#\1#' "secrets/$(echo "$app" | tr - _)_redis_url")
    echo "$user" | sed "s/ on / on #$(hash "$password") /"
  done < infra/redis/users.acl
} > secrets/redis_users.new
if cmp -s secrets/redis_users.new secrets/redis_users; then
  rm secrets/redis_users.new
else
  chmod 0444 secrets/redis_users.new
  mv -f secrets/redis_users.new secrets/redis_users
  echo 'made secrets/redis_users'
fi
