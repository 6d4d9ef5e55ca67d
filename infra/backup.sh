#!/bin/sh
# backup.sh <folder>: makes a logical backup of PostgreSQL in docker-compose.yml, checks that it can be read, and keeps
# the newest BACKUPS_KEPT (14). Writes the time of success for CallplaneBackupOld. ENCRYPTION_KEYS is not in it: back up
# ./secrets apart from the dumps.
set -eu
umask 077

[ $# -eq 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
file=$folder/callplane-$(date -u +%Y%m%dT%H%M%SZ).dump

# An interrupted dump must not count as a backup.
trap 'rm -f "$file.draft"' EXIT
docker compose exec -T postgres pg_dump --format=custom --username callplane callplane > "$file.draft"
docker compose exec -T postgres pg_restore --list < "$file.draft" > /dev/null
mv "$file.draft" "$file"

find "$folder" -maxdepth 1 -name 'callplane-*.dump' | sort -r | tail -n "+$((${BACKUPS_KEPT:-14} + 1))" | while read -r old; do
  rm -- "$old"
done

mkdir -p infra/metrics
printf 'backup_finished_timestamp_seconds %s\nbackup_bytes %s\n' "$(date +%s)" "$(wc -c < "$file" | tr -d ' ')" > infra/metrics/backup.prom.draft
# node-exporter runs as another user.
chmod 0644 infra/metrics/backup.prom.draft
mv infra/metrics/backup.prom.draft infra/metrics/backup.prom
echo "$file"
