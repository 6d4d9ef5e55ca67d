#!/bin/bash
# Checks that VideoRoom's thread for joins answers within five seconds, as the apps do all the time
# (packages/media/src/janus/probe.ts). Janus itself answers while that thread hangs.
set -eu
export LC_ALL=C
[ -z "${MEDIA_API_SECRET_FILE:-}" ] || MEDIA_API_SECRET=$(cat "$MEDIA_API_SECRET_FILE")

# Sends one request in a frame of WebSocket, with a mask of zeros. Spaces make it long enough for a length of two bytes.
send() {
  local text length
  printf -v text '%-126s' "{\"transaction\":\"health\",\"apisecret\":\"${MEDIA_API_SECRET:?}\",$1}"
  printf -v length '\\x%02x\\x%02x' $((${#text} >> 8)) $((${#text} & 255))
  printf "\\x81\\xfe$length\\0\\0\\0\\0%s" "$text" >&3
}

# Reads parts of the answer, which end with the character $1, until one holds the pattern $2.
until_part() {
  local part='' left
  until [[ $part =~ $2 ]]; do
    left=$((5 - SECONDS))
    ((left > 0)) && read -r -t "$left" -d "$1" part <&3 || exit 1
  done
}

exec 3<>"/dev/tcp/${JANUS_WS_IP:-127.0.0.1}/${JANUS_WS_PORT:-8188}"
printf '%s\r\n' 'GET / HTTP/1.1' 'Host: janus' 'Upgrade: websocket' 'Connection: Upgrade' 'Sec-WebSocket-Version: 13' \
  'Sec-WebSocket-Key: Y2FsbHBsYW5lLWhlYWx0aA==' 'Sec-WebSocket-Protocol: janus-protocol' '' >&3
until_part $'\n' ' 101 '
send '"janus":"create"'
until_part '}' '"id": *([0-9]+)'
session="\"session_id\":${BASH_REMATCH[1]}"
send "\"janus\":\"attach\",$session,\"plugin\":\"janus.plugin.videoroom\""
until_part '}' '"data".*"id": *([0-9]+)'
handle="\"handle_id\":${BASH_REMATCH[1]}"
send "\"janus\":\"message\",$session,$handle,\"body\":{\"request\":\"join\",\"ptype\":\"publisher\",\"room\":\"callplane-probe\"}"
until_part '}' '"plugindata"'
send "\"janus\":\"destroy\",$session"
# Janus logs an error if the connection has gone when it answers.
until_part '}' '"success"'
