#!/bin/sh
# Runs coturn with turnserver.conf and the settings of this machine (docker-compose.yml sets them). Secrets go into a
# configuration file, because every user of a machine can read command lines.
#
#   TURN_IP                    address to listen and to relay on; not loopback
#   MEDIA_IPS                  media servers, separated by commas: the only private addresses that relays may reach
#   TURN_ADMIN_IP              private address of the administration interface, at port TURN_ADMIN_PORT (5766)
#   TURN_SECRET_FILE, TURN_ADMIN_PASSWORD_FILE
#   TURN_USER_QUOTA, TURN_TOTAL_QUOTA, TURN_MAX_BPS, TURN_BPS_CAPACITY   override the figures in turnserver.conf
#   TURN_CONFIG, TURN_RUN_DIR  base configuration, and the folder of the complete one
set -eu
umask 077

run_dir=${TURN_RUN_DIR:-/tmp}
{
  cat "${TURN_CONFIG:-/etc/coturn/turnserver.conf}"
  echo
  echo "listening-ip=$TURN_IP"
  echo "relay-ip=$TURN_IP"
  echo "static-auth-secret=$(cat "$TURN_SECRET_FILE")"
  echo "cli-ip=$TURN_ADMIN_IP"
  echo "cli-port=${TURN_ADMIN_PORT:-5766}"
  echo "cli-password=$(cat "$TURN_ADMIN_PASSWORD_FILE")"
  for address in $(echo "$MEDIA_IPS" | tr ',' ' '); do
    echo "allowed-peer-ip=$address"
  done
  [ -z "${TURN_USER_QUOTA:-}" ] || echo "user-quota=$TURN_USER_QUOTA"
  [ -z "${TURN_TOTAL_QUOTA:-}" ] || echo "total-quota=$TURN_TOTAL_QUOTA"
  [ -z "${TURN_MAX_BPS:-}" ] || echo "max-bps=$TURN_MAX_BPS"
  [ -z "${TURN_BPS_CAPACITY:-}" ] || echo "bps-capacity=$TURN_BPS_CAPACITY"
} > "$run_dir/turnserver.conf"
exec turnserver -c "$run_dir/turnserver.conf"
