import { relative } from 'node:path';
import { root } from '../lib/files.mjs';

/**
 * The screen that a start ends with. The commands work as pasted, in any POSIX shell, without jq.
 * @param {{ origin: string, signalingUrl: string, demoUrl: string, dataDir: string, turn: string | undefined,
 *   hasMedia: boolean, seconds: number, keys: { secretKey: string, publishableKey: string } }} facts
 */
export function screen({ origin, signalingUrl, demoUrl, dataDir, turn, hasMedia, seconds, keys }) {
  const data = relative(root, dataDir).startsWith('..') ? dataDir : relative(root, dataDir);
  return `
Callplane runs (ready in ${seconds.toFixed(1)} s). Ctrl-C stops everything; what is stored stays.

  A call           ${demoUrl}   (open it in two tabs)
  API              ${origin}/v1   (reference: ${origin}/docs)
  Signaling        ${signalingUrl}${hasMedia ? '' : '   (no audio and video: Janus is not installed)'}
  Secret key       ${keys.secretKey}
  Publishable key  ${keys.publishableKey}
  STUN and TURN    ${turn ?? 'none (coturn is not installed)'}
  Data and logs    ${data} and ${data}/logs

Paste into another terminal:

  export BASE=${origin}/v1 KEY=${keys.secretKey}
  api() { curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$@"; echo; }
  ROOM=$(api $BASE/rooms -d '{"name":"Stand-up"}' | sed -n 's/.*"id":"\\(room_[0-9a-z]*\\)".*/\\1/p'); echo "$ROOM"
  api $BASE/rooms/$ROOM/tokens -d '{"participantName":"Ada","permissions":["room:join","audio:publish"]}'
  api $BASE/turn/credentials -d '{}'
  api -X DELETE $BASE/rooms/$ROOM -w '%{http_code}'
  api $BASE/rooms/$ROOM/runtime-operation
`;
}
