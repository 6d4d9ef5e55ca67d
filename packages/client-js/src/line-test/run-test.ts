import { abortable, assertNotAborted, CallplaneError, hasCode, invalidArgument } from '../errors.js';
import type * as Options from '../options.js';
import { platformOf, type Platform } from '../platform.js';
import type { SignalingSocket, SocketEnd } from '../signaling/socket.js';
import type { ConnectionTest, ConnectionTestOptions, ConnectionTestStep, LoopFigures } from '../test-connection.js';
import { KBIT_PER_SECOND_MAX, measureLoop } from './measure-loop.js';
import { askRelay, connectPair, within, type Connect } from './pair.js';
import { addressOf, relaysOver, stunServers, type Transport } from './transports.js';

/** How long a step waits for an answer. A browser asks a TURN server again after 0.5, 1.5 and 3.5 s. */
const ANSWER_WITHIN_MS = 5_000;
const LOOP_OPENS_WITHIN_MS = 8_000;
const SECONDS = { min: 1, usual: 4, max: 20 };

/** A line below these is too slow for pictures, or sound on it breaks. */
const VIDEO_KBIT_PER_SECOND = 300;
const BROKEN_PERCENT = 5;

type Result<T = undefined> = Pick<ConnectionTestStep, 'outcome' | 'message'> & { value?: T | undefined };
const passed = <T = undefined>(message: string, value?: T): Result<T> => ({ outcome: 'passed', message, value });
const failed = (message: string): Result<never> => ({ outcome: 'failed', message });
const skipped = (message: string): Result<never> => ({ outcome: 'skipped', message });

/** Of the core. If this module imported them, a bundler would move them into a further chunk, which each call loads. */
type Core = Pick<typeof Options, 'gatewayUrl' | 'assertToken'> & { SignalingSocket: typeof SignalingSocket };

interface Run {
  core: Core;
  platform: Platform;
  url: string;
  token: string | undefined;
  iceServers: RTCIceServer[] | undefined;
  seconds: number;
  connect: Connect;
  step: <T>(
    name: ConnectionTestStep['name'],
    work: Promise<Result<T>>,
  ) => Promise<ConnectionTestStep & { value: T | undefined }>;
  sockets: SignalingSocket[];
}

export async function runTest(options: ConnectionTestOptions, core: Core): Promise<ConnectionTest> {
  const { token, iceServers, seconds = SECONDS.usual, signal, onStep } = options;
  const url = core.gatewayUrl(options.url);
  if (!(seconds >= SECONDS.min && seconds <= SECONDS.max))
    throw invalidArgument('seconds', `must be a number from ${SECONDS.min} to ${SECONDS.max}`);
  if (iceServers === undefined) core.assertToken(token ?? '');
  assertNotAborted(signal);
  const platform = platformOf(options.platform);
  const { RTCPeerConnection: Connection, now } = platform;
  if (Connection === undefined) throw new CallplaneError('unsupported', 'WebRTC is not available in this environment.');
  const peers: RTCPeerConnection[] = [];
  const sockets: SignalingSocket[] = [];
  const run: Run = {
    ...{ core, platform, url, token, iceServers, seconds, sockets },
    connect: (configuration) => {
      // The test may have ended while the step waited.
      assertNotAborted(signal);
      const peer = new Connection(configuration);
      peers.push(peer);
      return peer;
    },
    step: async (name, work) => {
      const beganAt = now();
      const { outcome, message, value } = await work;
      const step = { name, outcome, durationMs: Math.round(now() - beganAt), message };
      if (signal?.aborted !== true) onStep?.(step);
      return { ...step, value };
    },
  };
  try {
    return await abortable(runSteps(run), signal);
  } finally {
    for (const open of [...peers, ...sockets]) open.close();
  }
}

async function runSteps(run: Run): Promise<ConnectionTest> {
  const webSocket = await run.step('webSocket', openWebSocket(run));
  const iceServers = run.iceServers ?? webSocket.value;
  const relays = await Promise.all([
    run.step('turnUdp', tryRelay(run, iceServers, 'udp')),
    run.step('turnTcp', tryRelay(run, iceServers, 'tcp')),
    run.step('turnTls', tryRelay(run, iceServers, 'tls')),
  ]);
  const relay = relays.find(({ value }) => value !== undefined)?.value;
  const [udp, loop] = await Promise.all([
    run.step('udp', tryUdp(run, iceServers ?? [], relay)),
    run.step(
      'loop',
      tryLoop(
        run,
        relays.map(({ value }) => value),
      ),
    ),
  ]);
  const media = [...relays, udp];
  const hasPath =
    media.some(({ outcome }) => outcome === 'passed') || media.every(({ outcome }) => outcome === 'skipped');
  return {
    steps: [webSocket, ...media, loop].map(({ value: _, ...step }) => step),
    isUsable: webSocket.outcome === 'passed' && hasPath,
    loop: loop.value,
  };
}

/** With a token, the value is the ICE servers. @throws CallplaneError if the gateway refuses the token */
async function openWebSocket({
  core,
  platform,
  url,
  token,
  iceServers,
  sockets,
}: Run): Promise<Result<RTCIceServer[]>> {
  const { host } = new URL(url);
  const closing: SocketEnd[] = [];
  let socket: SignalingSocket | undefined;
  const isOpen = within(
    ANSWER_WITHIN_MS,
    new Promise<boolean>((resolve) => {
      socket = new core.SignalingSocket(platform, url, {
        onOpen: () => resolve(true),
        onMessage: () => undefined,
        onEnd: (end) => {
          closing.push(end);
          resolve(false);
        },
      });
      sockets.push(socket);
    }),
  );
  const blocked = failed(
    `No WebSocket reaches ${host}. Let firewalls and proxies pass WebSockets to it${url.startsWith('wss:') ? ' (TCP, TLS)' : ''}.`,
  );
  if ((await isOpen) !== true || socket === undefined) return blocked;
  const works = `A WebSocket reaches ${host}.`;
  if (iceServers !== undefined) return passed(works);
  try {
    const answer = await socket.request({ type: 'test', token: token ?? '' }, ANSWER_WITHIN_MS);
    return passed(works, answer.iceServers);
  } catch (error) {
    if (!hasCode(error, 'connection_lost', 'no_answer')) throw error;
    for (const { reason, message } of closing) if (reason !== undefined) throw new CallplaneError(reason, message);
    return blocked;
  }
}

const NAMES = { udp: 'TURN over UDP', tcp: 'TURN over TCP', tls: 'TURN over TLS' };
const UNKNOWN = skipped('Not tested: without the gateway, no server is known.');

/** The value is the servers that gave a relay. */
async function tryRelay(
  { connect }: Run,
  iceServers: readonly RTCIceServer[] | undefined,
  transport: Transport,
): Promise<Result<RTCIceServer[]>> {
  if (iceServers === undefined) return UNKNOWN;
  const servers = relaysOver(iceServers, transport);
  if (servers.length === 0) return skipped(`The servers offer no ${NAMES[transport]}.`);
  const { host, port } = addressOf(servers, transport);
  const answer = await askRelay(connect, servers, ANSWER_WITHIN_MS);
  if (answer.is === 'relay') return passed(`${NAMES[transport]} works: ${host}:${port}.`, servers);
  if (answer.is === 'refused')
    return failed(
      `${host}:${port} answers and refuses a relay: ${answer.code} ${answer.text}. Ask the operator of the call.`,
    );
  const inspected = transport === 'tls' ? ', and exempt it from inspection of TLS' : '';
  const protocol = transport === 'udp' ? 'UDP' : 'TCP';
  return failed(`${NAMES[transport]} is blocked. Open ${protocol} port ${port} to ${host}${inspected}.`);
}

/** The far end is a relay, whose port is as high as the ports of media servers. The near end uses none. */
async function tryUdp(
  { connect }: Run,
  iceServers: readonly RTCIceServer[],
  relay: RTCIceServer[] | undefined,
): Promise<Result> {
  if (relay === undefined) return skipped('Not tested: it needs a relay as the other end.');
  const far: RTCConfiguration = { iceServers: relay, iceTransportPolicy: 'relay' };
  const pair = await connectPair(connect, [{ iceServers: stunServers(iceServers) }, far], ANSWER_WITHIN_MS);
  pair?.close();
  if (pair !== undefined) return passed('UDP to high ports works without a relay.');
  return failed(
    'UDP to high ports is blocked: calls take the relay. Open outgoing UDP to the media servers for a shorter way.',
  );
}

/** @param relays over UDP, TCP and TLS, as far as they work */
async function tryLoop(
  { connect, platform, seconds }: Run,
  [udp, tcp, tls]: readonly (RTCIceServer[] | undefined)[],
): Promise<Result<ConnectionTest['loop']>> {
  const lossless = tcp ?? tls;
  const [near, far] = [lossless ?? udp, udp ?? lossless];
  if (near === undefined || far === undefined) return skipped('Not tested: it needs a relay.');
  const side = (iceServers: RTCIceServer[]): RTCConfiguration => ({ iceServers, iceTransportPolicy: 'relay' });
  const pair = await connectPair(connect, [side(near), side(far)], LOOP_OPENS_WITHIN_MS);
  if (pair === undefined)
    return failed('No packet returns over the relay. The operator of the relay lets it reach its own address.');
  const figures = await measureLoop(pair, near !== far, seconds, platform.now);
  pair.close();
  return { outcome: 'passed', message: judge(figures), value: figures };
}

function judge({ roundTripMs, lossPercent, lossUpPercent, lossDownPercent, kbitPerSecond }: LoopFigures): string {
  const most = kbitPerSecond === KBIT_PER_SECOND_MAX ? 'at least ' : '';
  const loss = lossUpPercent === undefined ? `${lossPercent} %` : `${lossUpPercent} % up, ${lossDownPercent} % down`;
  const figures = `Round trip ${roundTripMs} ms, loss ${loss}, ${most}${kbitPerSecond} kbit/s.`;
  const slow = kbitPerSecond < VIDEO_KBIT_PER_SECOND ? ' Too slow for video: end other transfers.' : '';
  const broken = lossPercent >= BROKEN_PERCENT ? ' Sound will break: use a cable, or move nearer to the Wi-Fi.' : '';
  return figures + slow + broken;
}
