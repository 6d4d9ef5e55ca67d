#!/bin/bash
# Stand-in for the program of nginx: Debian builds the `stream` module as a file, which the image has compiled in.
set -eu
module='load_module /usr/lib/nginx/modules/ngx_stream_module.so;'
args=() found=
while [ $# -gt 0 ]; do
  if [ "$1" = -g ]; then
    args+=(-g "$module $2") found=1
    shift
  else
    args+=("$1")
  fi
  shift
done
[ -n "$found" ] || args+=(-g "$module")
exec /usr/sbin/nginx "${args[@]}"
