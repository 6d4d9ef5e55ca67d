import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from '../bootstrap.js';

interface ScreenFacts {
  isTerminal: boolean;
  isVerbose: boolean;
  devFile: string;
  origin: string;
  signalingUrl: string;
  demoUrl: string;
  metricsUrls: Readonly<Record<string, string>>;
  dataDir: string;
  turn: string | undefined;
  hasMedia: boolean;
  seconds: number;
  keys: { secretKey: string; publishableKey: string };
}

/**
 * The screen at the end of a start. Its commands work as pasted, in any POSIX shell, without jq. Only a terminal shows
 * the secret key: any other output is a file or a log, which would keep the key.
 */
export function screen(facts: ScreenFacts): string {
  const { isTerminal, isVerbose, devFile, origin, signalingUrl, demoUrl, dataDir, turn, hasMedia, seconds, keys } =
    facts;
  const whipUrl = signalingUrl.replace(/^ws/, 'http').replace(/signaling$/, 'whip');
  const metrics = Object.entries(facts.metricsUrls).map(([name, url]) => `${url}   (${name})`);
  const shownKey = isTerminal ? keys.secretKey : `in ${devFile}`;
  const pastedKey = isTerminal ? keys.secretKey : `$(sed -n 's/.*"secretKey": *"\\([^"]*\\)".*/\\1/p' '${devFile}')`;
  const data = relative(root, dataDir).startsWith('..') ? dataDir : relative(root, dataDir);
  const follows = isVerbose
    ? 'Each line of the apps follows.'
    : 'Warnings of the apps follow. With "npm start -- --verbose" each of their lines does.';
  return `
Callplane runs (ready in ${seconds.toFixed(1)} s). Ctrl-C stops everything. Stored data is kept.

  A call           ${demoUrl}   (open it in two tabs)
  Console          ${origin}/console/   (sign in with the secret key, or a link: ./rtc console login)
  API              ${origin}/v1   (documents: ${origin}/docs/)
  Signaling        ${signalingUrl}${hasMedia ? '' : '   (no audio and video: Janus is not installed)'}
  Encoders (WHIP)  ${whipUrl}
  Secret key       ${shownKey}
  Publishable key  ${keys.publishableKey}
  STUN and TURN    ${turn ?? 'none (coturn is not installed)'}
  Metrics          ${metrics.join(`\n${' '.repeat(19)}`)}
  Data and logs    ${data} and ${data}/logs

Paste into another terminal:

  export BASE=${origin}/v1 KEY=${pastedKey}
  api() { curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$@"; echo; }
  ROOM=$(api $BASE/rooms -d '{"name":"Stand-up"}' | sed -n 's/.*"id":"\\(room_[0-9a-z]*\\)".*/\\1/p'); echo "$ROOM"
  api $BASE/rooms/$ROOM/tokens -d '{"participantName":"Ada","permissions":["room:join","audio:publish","video:publish"]}'
  api $BASE/turn/credentials -d '{}'
  api -X DELETE $BASE/rooms/$ROOM -w '%{http_code}'
  api $BASE/rooms/$ROOM/runtime-operation

${follows}${isTerminal ? ' Enter shows this again.' : ''}
`;
}

/**
 * Calls `show` when Enter is pressed in a terminal. A process in the background must not read from the terminal, which
 * would stop it.
 * @returns stops it
 */
export function onEnter(show: () => void): () => void {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return () => undefined;
  const look = () => void (isInForeground() ? stdin.resume() : stdin.pause());
  stdin.on('data', show).on('error', () => undefined);
  process.on('SIGCONT', look);
  look();
  return () => {
    process.off('SIGCONT', look);
    stdin.pause();
  };
}

function isInForeground(): boolean {
  const text = readFileSync('/proc/self/stat', 'utf8');
  const [, , group, , , foregroundGroup] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return group === foregroundGroup;
}

/** npm forwards a Ctrl-C that the terminal has already delivered, so two signals within this time are one key press. */
const SAME_KEY_PRESS_MS = 1_000;

interface Signals {
  stopSignal: AbortSignal;
  /** Begins the stop without a signal, as after a failure. */
  beginStop: () => void;
  /** Sets the last action of an immediate stop, after which the kernel kills the children of this process. */
  onKillNow: (action: () => void) => void;
}

/**
 * Turns signals into one abort. The first signal requests an orderly stop, a second Ctrl-C an immediate one.
 */
export function handleSignals(say: (line: string) => void): Signals {
  const stopping = new AbortController();
  let killNow: () => void = () => undefined;
  let firstAt = 0;
  const stop = (reason: string) => {
    if (!stopping.signal.aborted) {
      firstAt = performance.now();
      say(`\nStopping (${reason}); Ctrl-C again kills`);
      stopping.abort();
    } else if (reason === 'SIGINT' && performance.now() - firstAt > SAME_KEY_PRESS_MS) {
      killNow();
      process.exit(130);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
  // A closed terminal must not interrupt an orderly stop.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);

  return {
    stopSignal: stopping.signal,
    beginStop: () => stopping.abort(),
    onKillNow: (action) => {
      killNow = action;
    },
  };
}
