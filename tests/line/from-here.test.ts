import { beforeAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import type { ConnectionTest } from '@callplane/client-js';
import { hostIPv4 } from '@callplane/local-servers';
import {
  newCertificate,
  repositoryRoot,
  startTestCoturn,
  startTestNginx,
  type TestCertificate,
  type TestCoturn,
} from '@callplane/testing';
import { mediaSettings } from '../browser/stage.testkit.js';
import { startStack, type Stack } from '../faults/faults.testkit.js';
import { addNamespace, addressOf, addServiceAddress, SERVICE_ADDRESS, type LineFaults } from './namespace.testkit.js';

/**
 * `rtc doctor --from-here`, and with it `testConnection()` of the SDK, on machines whose networks block, slow down or lose
 * packets: one namespace for each, all at once.
 */

const DOMAIN = 'callplane.test';
const TURN = `turn.${DOMAIN}`;
const CLI = join(repositoryRoot, 'apps', 'cli', 'dist', 'main.js');
const BLOCKED_UDP =
  'UDP to high ports is blocked: calls take the relay. Open outgoing UDP to the media servers for a shorter way.';

const isRoot = process.getuid?.() === 0;
let coturn: TestCoturn;
let tested: Record<Line, Promise<Tested>>;

type Line = 'open' | 'without UDP' | 'without TURN' | 'with 443 alone' | 'of 200 kbit/s' | 'that loses 5 %';
type Tested = Awaited<ReturnType<typeof testFrom>>;

beforeAll(async () => {
  if (!isRoot) return;
  addServiceAddress();
  const certificate = newCertificate(`DNS:${DOMAIN}`, `DNS:*.${DOMAIN}`);
  const lines = 6;
  const mediaAddresses = [hostIPv4(), ...Array.from({ length: lines }, (_, at) => addressOf(at))];
  let stack: Stack;
  [stack, coturn] = await Promise.all([startStack(), startTestCoturn({ mediaAddresses })]);
  const settings = mediaSettings(undefined, coturn);
  const TURN_URLS = `${settings['TURN_URLS']},turns:${TURN}:443?transport=tcp`;
  const [api, gateway] = await Promise.all([stack.spawnApi({ ...settings, TURN_URLS }), stack.spawnSignaling()]);
  const portOf = ({ url }: { url: string }) => Number(new URL(url).port);
  await startTestNginx(
    { api: [portOf(api)], signaling: [portOf(gateway)] },
    { port: 443, tls: { ...certificate, coturn, host: SERVICE_ADDRESS } },
  );
  const from = (at: number, faults: LineFaults) => testFrom(at, faults, stack.tenant.key, certificate);
  const toCoturn = ['udp', 'tcp'].map((protocol) => `-p ${protocol} --dport ${coturn.port}`);
  tested = {
    open: from(0, {}),
    'without UDP': from(1, { drop: ['-p udp'] }),
    // The name of the server is readable in the handshake of TLS.
    'without TURN': from(2, { drop: [...toCoturn, `-p tcp --dport 443 -m string --algo bm --string ${TURN}`] }),
    'with 443 alone': from(3, { drop: ['-p udp', '-p tcp ! --dport 443'] }),
    'of 200 kbit/s': from(4, { kbitPerSecond: 200 }),
    'that loses 5 %': from(lines - 1, { losesOneOf: 20 }),
  };
  // Each test awaits its own.
  for (const one of Object.values(tested)) one.catch(() => undefined);
});

async function testFrom(at: number, faults: LineFaults, key: string, { caFile }: TestCertificate) {
  const { node } = addNamespace(at, [DOMAIN, TURN], faults);
  const { code, stdout, stderr } = await node([CLI, 'doctor', '--from-here', '--json'], {
    CALLPLANE_URL: `https://${DOMAIN}`,
    CALLPLANE_API_KEY: key,
    NODE_EXTRA_CA_CERTS: caFile,
  });
  if (stdout === '') throw new Error(`exit code ${code}: ${stderr}`);
  const { steps, loop } = JSON.parse(stdout) as ConnectionTest;
  const sentences = Object.fromEntries(steps.map(({ name, message }) => [name, message]));
  process.stderr.write(`    measured: ${sentences['loop']}\n`);
  return {
    code,
    stderr,
    loop,
    outcomes: steps.map(({ name, outcome }) => `${name} ${outcome}`).join(', '),
    durations: steps.map(({ durationMs }) => durationMs),
    sentences,
  };
}

const onLine = (line: Line, check: (found: Tested) => void) =>
  (isRoot ? test : test.skip)(`on a line ${line}`, async () => check(await tested[line]));
const blocked = (protocol: 'UDP' | 'TCP') =>
  `TURN over ${protocol} is blocked. Open ${protocol} port ${coturn.port} to ${coturn.host}.`;

onLine('open', ({ code, outcomes, sentences, durations, loop }) => {
  expect({ code, outcomes }).toEqual({
    code: 0,
    outcomes: 'webSocket passed, turnUdp passed, turnTcp passed, turnTls passed, udp passed, loop passed',
  });
  expect(sentences).toMatchObject({
    webSocket: `A WebSocket reaches ${DOMAIN}.`,
    turnUdp: `TURN over UDP works: ${coturn.host}:${coturn.port}.`,
    turnTls: `TURN over TLS works: ${TURN}:443.`,
    loop: expect.stringMatching(/^Round trip \d+ ms, loss 0 % up, 0 % down, (at least )?\d+ kbit\/s\.$/),
  });
  expect(durations.every((ms) => ms > 0)).toBe(true);
  expect(loop).toMatchObject({ lossPercent: 0 });
});

onLine('without UDP', ({ code, outcomes, sentences }) => {
  expect({ code, outcomes }).toEqual({
    code: 0,
    outcomes: 'webSocket passed, turnUdp failed, turnTcp passed, turnTls passed, udp failed, loop passed',
  });
  expect(sentences).toMatchObject({ turnUdp: blocked('UDP'), udp: BLOCKED_UDP });
});

onLine('without TURN', ({ code, stderr, outcomes, sentences }) => {
  expect({ code, stderr, outcomes }).toEqual({
    code: 1,
    stderr: 'No call works from this machine.\n',
    outcomes: 'webSocket passed, turnUdp failed, turnTcp failed, turnTls failed, udp skipped, loop skipped',
  });
  expect(sentences).toMatchObject({
    turnUdp: blocked('UDP'),
    turnTcp: blocked('TCP'),
    turnTls: `TURN over TLS is blocked. Open TCP port 443 to ${TURN}, and exempt it from inspection of TLS.`,
  });
});

onLine('with 443 alone', ({ code, outcomes, sentences }) => {
  expect({ code, outcomes }).toEqual({
    code: 0,
    outcomes: 'webSocket passed, turnUdp failed, turnTcp failed, turnTls passed, udp failed, loop passed',
  });
  expect(sentences).toMatchObject({ turnUdp: blocked('UDP'), turnTcp: blocked('TCP'), udp: BLOCKED_UDP });
});

onLine('of 200 kbit/s', ({ code, loop, sentences }) => {
  expect({ code, loop: sentences['loop'] }).toEqual({ code: 0, loop: expect.stringContaining('Too slow for video') });
  expect(loop!.kbitPerSecond).toBeLessThan(210);
});

onLine('that loses 5 %', ({ code, loop, sentences }) => {
  expect({ code, loop: sentences['loop'] }).toEqual({ code: 0, loop: expect.stringContaining('Sound will break') });
  for (const percent of [loop!.lossUpPercent, loop!.lossDownPercent]) {
    expect(percent).toBeGreaterThan(0);
    expect(percent).toBeLessThan(15);
  }
});
