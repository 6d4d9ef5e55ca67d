import { spawn, type ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { hostIPv4 } from '@callplane/local-servers';
import { newCertificate } from '../certificate.js';
import { eventually } from '../eventually.js';
import { stopAtEnd } from '../resources.js';
import { KEYING_MATERIAL_BYTES, srtpContexts, type SrtpContext } from './srtp.js';
import { BINDING_REQUEST, BINDING_SUCCESS, STUN, stunMessage, xorAddress, type StunAttribute } from './stun.js';

/**
 * A WebRTC peer whose test writes every packet itself: ICE and DTLS end well, and the keys of SRTP are known. `openssl
 * s_client` does the handshake, because no library for the oldest supported Node gives out its keys.
 */
export interface RawPeer {
  /** Lines for each media section: ICE, fingerprint, the DTLS client's role, and a candidate. */
  readonly transport: string;
  /** Connects to the peer of this description. Resolves once DTLS is up. */
  connect(remote: string, role: 'controlling' | 'controlled'): Promise<void>;
  /** Send a packet inside valid SRTP or SRTCP. */
  sendRtp(packet: Buffer): void;
  sendRtcp(packet: Buffer): void;
  /** Sends application data inside DTLS. */
  sendData(data: Buffer): void;
  /** Sends a datagram as it is. */
  sendRaw(datagram: Buffer): void;
  /** A valid STUN request with these attributes, signed unless `password` is another one. */
  stunRequest(attributes: readonly StunAttribute[], password?: string): Buffer;
  /** Protects packets for this peer's session. */
  readonly srtp: SrtpContext;
  /** `rtp` has the number of packets of each stream and its latest sequence number, by its SSRC. */
  readonly received: { rtp: Map<number, { packets: number; sequence: number }>; bytes: number; rtcp: Buffer[] };
  /** Stops answering, without a farewell. Idempotent. */
  close(): void;
}

const UFRAG = 'rawp';
const PASSWORD = 'a-password-of-the-raw-peer';
const CHECK_EVERY_MS = 50;
const PRIORITY = 2_122_260_223;

export async function createRawPeer(): Promise<RawPeer> {
  const host = hostIPv4();
  const certificate = newCertificate('DNS:raw-peer');
  const [wire, local] = [await bound(host), await bound('127.0.0.1')];
  const received: RawPeer['received'] = { rtp: new Map(), bytes: 0, rtcp: [] };
  let remote: Remote | undefined;
  let openssl: ChildProcess | undefined;
  let opensslPort: number | undefined;
  let contexts: ReturnType<typeof srtpContexts> | undefined;
  let checks: NodeJS.Timeout | undefined;
  let isNominated = false;
  let isClosed = false;
  const sendRaw = (datagram: Buffer) => {
    if (remote !== undefined && !isClosed) wire.send(datagram, remote.port, remote.address);
  };
  const stunRequest = (attributes: readonly StunAttribute[], password = remote?.password ?? '') =>
    stunMessage(BINDING_REQUEST, [[STUN.username, Buffer.from(`${remote?.ufrag}:${UFRAG}`)], ...attributes], {
      password,
    });
  const own = () => {
    if (contexts === undefined) throw new Error('The peer is not connected.');
    return contexts.client;
  };
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    clearInterval(checks);
    openssl?.kill('SIGKILL');
    wire.close();
    local.close();
  };
  stopAtEnd(() => {
    close();
    return Promise.resolve();
  });

  wire.on('message', (datagram, { address, port }) => {
    const first = datagram[0] ?? 0;
    if (first >= 128) {
      const type = datagram[1] ?? 0;
      received.bytes += datagram.length;
      if (type < 192 || type > 223) {
        const ssrc = datagram.readUInt32BE(8);
        const { packets = 0 } = received.rtp.get(ssrc) ?? {};
        received.rtp.set(ssrc, { packets: packets + 1, sequence: datagram.readUInt16BE(2) });
      } else if (contexts !== undefined) received.rtcp.push(contexts.server.openRtcp(datagram));
    } else if (first >= 20) {
      if (opensslPort !== undefined) local.send(datagram, opensslPort, '127.0.0.1');
    } else if (datagram.readUInt16BE(0) === BINDING_SUCCESS) isNominated = true;
    else if (datagram.readUInt16BE(0) === BINDING_REQUEST) {
      const mapped: StunAttribute = [STUN.xorMappedAddress, xorAddress(address, port)];
      wire.send(
        stunMessage(BINDING_SUCCESS, [mapped], { id: datagram.subarray(8, 20), password: PASSWORD }),
        port,
        address,
      );
    }
  });
  local.on('message', (datagram, { port }) => {
    opensslPort = port;
    sendRaw(datagram);
  });

  return {
    transport: [
      `c=IN IP4 ${host}`,
      'a=setup:active',
      `a=ice-ufrag:${UFRAG}`,
      `a=ice-pwd:${PASSWORD}`,
      `a=fingerprint:sha-256 ${new X509Certificate(certificate.cert).fingerprint256}`,
      `a=candidate:1 1 udp ${PRIORITY} ${host} ${wire.address().port} typ host`,
      'a=rtcp-mux',
    ].join('\r\n'),
    received,
    get srtp() {
      return own();
    },
    async connect(description, role) {
      remote = remoteOf(description);
      const priority = Buffer.alloc(4);
      priority.writeUInt32BE(PRIORITY);
      const check = () =>
        sendRaw(
          stunRequest([
            [STUN.priority, priority],
            [STUN[role], Buffer.alloc(8, 1)],
            ...(role === 'controlling' ? [[STUN.useCandidate, Buffer.alloc(0)] as StunAttribute] : []),
          ]),
        );
      checks = setInterval(check, CHECK_EVERY_MS);
      check();
      await eventually(() => isNominated);
      openssl = spawn('openssl', opensslArguments(certificate.caFile, local.address().port), { stdio: 'pipe' });
      let output = '';
      openssl.stdin?.on('error', () => undefined);
      openssl.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
      openssl.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
      contexts = await eventually(() => {
        if (openssl?.exitCode !== null) throw new Error(`openssl has ended: ${output.slice(-500)}`);
        const [, hex] = /Keying material: ([0-9A-F]+)/.exec(output) ?? [];
        return hex?.length === 2 * KEYING_MATERIAL_BYTES ? srtpContexts(Buffer.from(hex, 'hex')) : null;
      });
    },
    sendRtp: (packet) => sendRaw(own().protectRtp(packet)),
    sendRtcp: (packet) => sendRaw(own().protectRtcp(packet)),
    sendData: (data) => void openssl?.stdin?.write(data),
    sendRaw,
    stunRequest,
    close,
  };
}

interface Remote {
  address: string;
  port: number;
  ufrag: string;
  password: string;
}

/** The other side's first UDP candidate, and its ICE credentials. */
function remoteOf(description: string): Remote {
  const value = (pattern: RegExp) => pattern.exec(description)?.[1] ?? '';
  const [, address = '', port] =
    /^a=candidate:\S+ 1 udp \d+ (\d+\.\d+\.\d+\.\d+) (\d+) typ host/m.exec(description) ?? [];
  if (port === undefined) throw new Error(`no candidate in ${description}`);
  return { address, port: Number(port), ufrag: value(/^a=ice-ufrag:(\S+)/m), password: value(/^a=ice-pwd:(\S+)/m) };
}

function opensslArguments(certificateFile: string, port: number): string[] {
  const keyFile = join(dirname(certificateFile), 'key.pem');
  const material = ['-keymatexport', 'EXTRACTOR-dtls_srtp', '-keymatexportlen', `${KEYING_MATERIAL_BYTES}`];
  return [
    ...['s_client', '-dtls1_2', '-connect', `127.0.0.1:${port}`, '-cert', certificateFile, '-key', keyFile],
    ...['-use_srtp', 'SRTP_AES128_CM_SHA1_80', ...material, '-ign_eof', '-nocommands', '-mtu', '1200'],
  ];
}

async function bound(address: string): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  socket.bind(0, address);
  await once(socket, 'listening');
  return socket;
}
