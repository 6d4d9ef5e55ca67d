import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { COOKIE, stunMessage, type StunAttribute } from './raw-peer/stun.js';

export interface TurnClientOptions {
  host: string;
  port: number;
  username: string;
  credential: string;
  /** The transport between client and server. */
  transport?: 'udp' | 'tcp' | 'tls';
  /** For TLS: the server name, and the certificate of its authority. */
  tls?: { servername: string; ca: string };
}

/** The server's answer: 0 for success, otherwise the error code of RFC 8656. */
type TurnCode = number;

/**
 * A TURN client (RFC 8656, and Connect of RFC 6062) that sends whatever the test asks, including requests that no
 * browser sends.
 */
interface TurnClient {
  /** Requests a relay; `relay` defaults to `udp`. */
  allocate(options?: { relay?: 'udp' | 'tcp'; family?: 4 | 6 }): Promise<TurnCode>;
  /** Permits packets from a peer. */
  permit(address: string): Promise<TurnCode>;
  bindChannel(channel: number, address: string, port: number): Promise<TurnCode>;
  /** Asks the relay for a TCP connection to a peer. */
  connect(address: string, port: number): Promise<TurnCode>;
  refresh(): Promise<TurnCode>;
  close(): void;
}

const METHODS = { allocate: 0x003, refresh: 0x004, permit: 0x008, bind: 0x009, connect: 0x00a } as const;
const SUCCESS = 0x0100;
const ERROR = 0x0110;
const ATTRIBUTES = {
  username: 0x0006,
  errorCode: 0x0009,
  channel: 0x000c,
  lifetime: 0x000d,
  peer: 0x0012,
  realm: 0x0014,
  nonce: 0x0015,
  family: 0x0017,
  transport: 0x0019,
} as const;
const LIFETIME_SECONDS = 600;
const RETRANSMIT_MS = 300;
const ANSWER_WITHIN_MS = 5_000;

export async function openTurnClient(options: TurnClientOptions): Promise<TurnClient> {
  const waiting = new Map<string, (message: Buffer) => void>();
  const wire = await openWire(options, (message) => {
    if ((message.readUInt16BE(0) & SUCCESS) !== 0) waiting.get(message.subarray(8, 20).toString('hex'))?.(message);
  });
  let realm: Buffer | undefined;
  let nonce: Buffer | undefined;

  const exchange = (method: number, attributes: StunAttribute[]): Promise<Buffer> => {
    const id = randomBytes(12);
    const signed = realm === undefined || nonce === undefined ? null : { ...options, realm, nonce };
    const bytes = encode(method, id, attributes, signed);
    return new Promise((resolve, reject) => {
      const finish = (end: () => void) => {
        clearInterval(again);
        clearTimeout(late);
        waiting.delete(id.toString('hex'));
        end();
      };
      const again = setInterval(() => {
        if (options.transport === undefined || options.transport === 'udp') wire.send(bytes);
      }, RETRANSMIT_MS);
      const late = setTimeout(
        () => finish(() => reject(new Error('the TURN server does not answer'))),
        ANSWER_WITHIN_MS,
      );
      waiting.set(id.toString('hex'), (message) => finish(() => resolve(message)));
      wire.send(bytes);
    });
  };
  const request = async (method: number, attributes: StunAttribute[]): Promise<TurnCode> => {
    let code = 0;
    // The first request goes without credentials, to get the realm and nonce; a stale nonce needs another round.
    for (let round = 0; round < 3; round += 1) {
      const message = await exchange(method, attributes);
      if ((message.readUInt16BE(0) & ERROR) !== ERROR) return 0;
      const answered = decode(message);
      const error = answered.get(ATTRIBUTES.errorCode);
      code = error === undefined ? 500 : (error[2] ?? 0) * 100 + (error[3] ?? 0);
      const challenged = code === 438 || (code === 401 && nonce === undefined);
      realm = answered.get(ATTRIBUTES.realm) ?? realm;
      nonce = answered.get(ATTRIBUTES.nonce) ?? nonce;
      if (!challenged) return code;
    }
    return code;
  };

  return {
    allocate: ({ relay = 'udp', family } = {}) =>
      request(METHODS.allocate, [
        [ATTRIBUTES.transport, Buffer.from([relay === 'udp' ? 17 : 6, 0, 0, 0])],
        ...(family === undefined
          ? []
          : [[ATTRIBUTES.family, Buffer.from([family === 4 ? 1 : 2, 0, 0, 0])] as StunAttribute]),
      ]),
    permit: (address) => request(METHODS.permit, [peerOf(address, 0)]),
    bindChannel: (channel, address, port) =>
      request(METHODS.bind, [[ATTRIBUTES.channel, uint32(channel * 0x10000)], peerOf(address, port)]),
    connect: (address, port) => request(METHODS.connect, [peerOf(address, port)]),
    refresh: () => request(METHODS.refresh, [[ATTRIBUTES.lifetime, uint32(LIFETIME_SECONDS)]]),
    close: () => wire.close(),
  };
}

interface Wire {
  send(bytes: Buffer): void;
  close(): void;
}

async function openWire(options: TurnClientOptions, onMessage: (message: Buffer) => void): Promise<Wire> {
  const { host, port } = options;
  if (options.transport === 'tcp' || options.transport === 'tls') {
    const isTls = options.transport === 'tls';
    const socket = isTls ? connectTls({ host, port, ...options.tls }) : connect(port, host);
    let rest = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      // A STUN message begins with two zero bits; everything else is channel data, padded to four bytes.
      for (;;) {
        if (rest.length < 4) return;
        const isStun = (rest[0] ?? 0) < 0x40;
        const size = isStun ? 20 + rest.readUInt16BE(2) : 4 + ((rest.readUInt16BE(2) + 3) & ~3);
        if (rest.length < size) return;
        if (isStun) onMessage(rest.subarray(0, size));
        rest = rest.subarray(size);
      }
    });
    const opened = isTls ? 'secureConnect' : 'connect';
    await new Promise<void>((resolve, reject) => socket.once(opened, resolve).once('error', reject));
    return { send: (bytes) => void socket.write(bytes), close: () => void socket.destroy() };
  }
  const socket = createSocket('udp4');
  let isOpen = true;
  socket.on('error', () => undefined);
  socket.on('message', (message) => {
    if (message.length >= 20 && (message[0] ?? 0) < 0x40) onMessage(message);
  });
  await new Promise<void>((resolve) => socket.connect(port, host, resolve));
  return {
    send: (bytes) => {
      if (isOpen) socket.send(bytes);
    },
    close: () => {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}

interface Signature {
  username: string;
  credential: string;
  realm: Buffer;
  nonce: Buffer;
}

function encode(type: number, id: Buffer, attributes: StunAttribute[], signature: Signature | null): Buffer {
  const own = attributes.map(([name, value]): StunAttribute => [
    name,
    name === ATTRIBUTES.peer ? xored(value, id) : value,
  ]);
  if (signature === null) return stunMessage(type, own, { id });
  const { username, realm, nonce, credential } = signature;
  const password = createHash('md5').update(`${username}:${realm.toString()}:${credential}`).digest();
  const all: StunAttribute[] = [
    ...own,
    [ATTRIBUTES.username, Buffer.from(username)],
    [ATTRIBUTES.realm, realm],
    [ATTRIBUTES.nonce, nonce],
  ];
  return stunMessage(type, all, { id, password });
}

function decode(message: Buffer): Map<number, Buffer> {
  const attributes = new Map<number, Buffer>();
  for (let at = 20; at + 4 <= message.length;) {
    const size = message.readUInt16BE(at + 2);
    attributes.set(message.readUInt16BE(at), message.subarray(at + 4, at + 4 + size));
    at += 4 + ((size + 3) & ~3);
  }
  return attributes;
}

/** XORs an address with the cookie, and an IPv6 address also with the transaction id. */
function xored(peer: Buffer, id: Buffer): Buffer {
  const mask = Buffer.concat([uint32(COOKIE), id]);
  const result = Buffer.from(peer);
  result.writeUInt16BE(peer.readUInt16BE(2) ^ (COOKIE >>> 16), 2);
  for (let at = 4; at < peer.length; at += 1) result[at] = (peer[at] ?? 0) ^ (mask[at - 4] ?? 0);
  return result;
}

function peerOf(address: string, port: number): StunAttribute {
  return [
    ATTRIBUTES.peer,
    Buffer.concat([Buffer.from([0, isIPv6(address) ? 2 : 1]), uint16(port), addressBytes(address)]),
  ];
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  // The URL parser writes every form in hexadecimal groups, with at most one `::`.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [left = [], right = []] = groups.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return Buffer.concat([...left, ...zeros, ...right].map((group) => uint16(Number.parseInt(group, 16))));
}

const uint16 = (value: number) => Buffer.from([value >>> 8, value & 0xff]);
const uint32 = (value: number) => Buffer.concat([uint16(value >>> 16), uint16(value & 0xffff)]);

/** A credential as the API issues it. */
export function turnCredential(
  secret: string,
  subject: string,
  ttlSeconds = 600,
): { username: string; credential: string } {
  const username = `${Math.floor(Date.now() / 1000) + ttlSeconds}:${subject}`;
  return { username, credential: createHmac('sha1', secret).update(username).digest('base64') };
}

/** The number of relays per user of a coturn, as its administration interface reports it. */
export function relaysByUser(coturn: { adminUrl: string; adminPassword: string }): Promise<Map<string, number>> {
  const url = new URL(coturn.adminUrl);
  const socket = connect(Number(url.port), url.hostname);
  let output = '';
  return new Promise((resolve, reject) => {
    socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy(new Error('coturn does not answer')));
    socket.once('error', reject);
    // coturn treats all data that arrives at once as one line.
    let next = [coturn.adminPassword, 'pu'];
    socket.on('data', (chunk: Buffer) => {
      output += chunk.toString('latin1');
      if (/(?:password: \s*|> )$/.test(output)) {
        const [line, ...rest] = next;
        next = rest;
        if (line !== undefined) socket.write(`${line}\r\n`);
      }
      if (!/Total sessions: \d+/.test(output)) return;
      socket.destroy();
      const users = output.matchAll(/user: <(.*)>, (\d+) sessions/g);
      resolve(new Map([...users].map(([, user = '', count]) => [user, Number(count)])));
    });
  });
}
