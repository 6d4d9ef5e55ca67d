#!/bin/bash
# Checks that Janus completes a WebSocket handshake within two seconds. The apps check more: they ping it continuously.
set -eu
exec 3<>"/dev/tcp/${JANUS_WS_IP:-127.0.0.1}/${JANUS_WS_PORT:-8188}"
printf '%s\r\n' 'GET / HTTP/1.1' 'Host: janus' 'Upgrade: websocket' 'Connection: Upgrade' 'Sec-WebSocket-Version: 13' \
  'Sec-WebSocket-Key: Y2FsbHBsYW5lLWhlYWx0aA==' 'Sec-WebSocket-Protocol: janus-protocol' '' >&3
read -r -t 2 status <&3
[[ $status == *' 101 '* ]]
