import { once } from 'node:events';
import { createServer, isIP, type AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionTest, ConnectionTestStep, Platform } from '@callplane/client-js';
import type { IceServer } from '@callplane/server';
import type { Cli } from '../cli.js';
import { CommandError } from '../failure.js';
import { nodePlatform } from '../node-platform.js';
import { print, tableOf, type OutputOptions } from '../output.js';
import { serviceFailure, serviceOf } from '../service-access.js';

export interface FromHereOptions extends OutputOptions {
  url?: string;
  key?: string;
}

const MARKS = { passed: 'ok', failed: 'FAILURE', skipped: 'skipped' } as const;

/**
 * Tests the line from this machine to the service with the SDK, as a page in a browser does. Nobody joins.
 * @throws CommandError if no call would work
 */
export async function testFromHere(cli: Cli, options: FromHereOptions): Promise<void> {
  const { signalingUrl, api } = serviceOf(cli, options);
  const { iceServers } = await api.issueTurnCredentials({}).catch((error: unknown) => {
    throw serviceFailure(error);
  });
  const bridges = await Promise.all(turnsUrls(iceServers).map(openBridge));
  try {
    const platform = await platformOver(bridges);
    const { testConnection } = await import('@callplane/client-js');
    const tested = await testConnection({ url: signalingUrl, iceServers, platform });
    print(cli, options, tested, textOf(tested));
    if (!tested.isUsable) throw new CommandError('No call works from this machine.');
  } finally {
    for (const bridge of bridges) bridge.close();
  }
}

function textOf({ steps }: ConnectionTest): string {
  return tableOf<ConnectionTestStep>(steps, {
    STATUS: ({ outcome }) => MARKS[outcome],
    CHECK: ({ name }) => name,
    TOOK: ({ outcome, durationMs }) => (outcome === 'skipped' ? null : `${durationMs} ms`),
    FINDING: ({ message }) => message,
  });
}

function turnsUrls(iceServers: readonly IceServer[]): string[] {
  return [...new Set(iceServers.flatMap(({ urls }) => urls).filter((url) => url.startsWith('turns:')))];
}

interface Bridge {
  /** The URL with TLS, and the one without that leads to the same server. */
  from: string;
  to: string;
  close(): void;
}

/**
 * Accepts TCP on loopback and connects each connection with the server of a `turns:` URL. WebRTC in Node trusts a list of
 * authorities of its own, without Let's Encrypt's and without NODE_EXTRA_CA_CERTS. This way Node checks the certificate.
 */
async function openBridge(url: string): Promise<Bridge> {
  const [, host = '', port = '5349'] = /^turns:\[?(.*?)\]?(?::(\d+))?(?:\?.*)?$/.exec(url) ?? [];
  const server = createServer((near) => {
    const far = connectTls({ host, port: Number(port), ...(isIP(host) === 0 ? { servername: host } : {}) });
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      socket.on('error', () => undefined);
      socket.once('close', () => [near, far].forEach((one) => one.destroy()));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const to = `turn:127.0.0.1:${(server.address() as AddressInfo).port}?transport=tcp`;
  return { from: url, to, close: () => void server.close() };
}

async function platformOver(bridges: readonly Bridge[]): Promise<Partial<Platform>> {
  const { RTCPeerConnection: Connection, WebSocket } = await nodePlatform();
  const bridged = (url: string): string => bridges.find(({ from }) => from === url)?.to ?? url;
  class BridgedConnection extends Connection {
    constructor({ iceServers = [], ...rest }: RTCConfiguration = {}) {
      super({ ...rest, iceServers: iceServers.map((one) => ({ ...one, urls: [one.urls].flat().map(bridged) })) });
    }
  }
  return { RTCPeerConnection: BridgedConnection, WebSocket };
}
