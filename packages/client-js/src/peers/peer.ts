import { asCallplaneError } from '../errors.js';
import type { Encryption } from '../encryption/encryption.js';
import type { IceServers } from '../ice-servers.js';
import type { Candidate, PeerTarget } from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';
import { IceRepair, type RepairContext } from './ice-repair.js';

export interface PeersContext {
  session: Session;
  iceServers: Pick<IceServers, 'open' | 'renew'>;
  createConnection: () => RTCPeerConnection;
  encryption: () => Encryption | undefined;
  random: () => number;
  onPath: (target: PeerTarget, isLost: boolean) => void;
}

export class Peer {
  readonly connection: RTCPeerConnection;
  readonly repair: IceRepair;
  /** Resolves once the connection may gather candidates. Without an answer of the gateway it uses the servers it has. */
  readonly ready: () => Promise<void>;

  constructor(
    target: PeerTarget,
    { session, iceServers, createConnection, random, onPath }: PeersContext,
    { restart, replace }: Pick<RepairContext, 'restart' | 'replace'>,
  ) {
    const connection = (this.connection = createConnection());
    let opening: Promise<void> | undefined;
    this.ready = () => (opening ??= iceServers.open(target, connection).catch(() => undefined));
    this.repair = new IceRepair({
      connection,
      random,
      isReachable: () => session.state === 'connected',
      restart: async () => {
        await iceServers.renew(target, connection);
        await restart();
      },
      onPath: (isLost) => {
        // The browser would ask for key frames up to 3 s later.
        if (!isLost) session.post({ type: 'refreshVideo', targets: [target] });
        onPath(target, isLost);
      },
      replace: () => {
        session.request({ type: 'resetMedia', targets: [target] }).catch(() => undefined);
        replace();
      },
    });
    connection.onconnectionstatechange = () => this.repair.changed();
    connection.onicecandidate = ({ candidate }) => {
      // An empty candidate only marks the end of a generation.
      if (candidate?.candidate !== '') session.post({ type: 'candidate', target, candidate: plain(candidate) });
    };
  }

  /**
   * Creates the local description and applies it.
   * @returns its SDP.
   * @throws CallplaneError `invalid_sdp` if the browser cannot do that.
   */
  async setLocal(create: () => Promise<RTCSessionDescriptionInit>): Promise<string> {
    try {
      const created = await create();
      const changed = { ...created, sdp: withAudioNack(created.sdp ?? '') };
      // Browsers may refuse a description that they did not make exactly so.
      await this.connection.setLocalDescription(changed).catch(() => this.connection.setLocalDescription(created));
      return this.connection.localDescription?.sdp ?? '';
    } catch (error) {
      throw asCallplaneError(error, 'invalid_sdp');
    }
  }

  async setRemote({ type, sdp = '' }: RTCSessionDescriptionInit): Promise<void> {
    try {
      await this.connection.setRemoteDescription({ type, sdp: withAudioNack(sdp) });
    } catch (error) {
      throw asCallplaneError(error, 'invalid_sdp');
    }
  }

  close(): void {
    this.repair.close();
    this.connection.onicecandidate = null;
    this.connection.onconnectionstatechange = null;
    this.connection.close();
  }
}

function plain(found: RTCIceCandidate | null): Candidate {
  if (found === null) return null;
  const { candidate, sdpMid, sdpMLineIndex, usernameFragment } = found;
  return { candidate, sdpMid, sdpMLineIndex, usernameFragment: usernameFragment ?? null };
}

/**
 * Adds `nack` to the Opus sections of a description: lost packets of audio are then sent again, as those of video are.
 * Browsers can do that, but do not offer it themselves.
 */
export function withAudioNack(sdp: string): string {
  return mapSections(sdp, (section) => {
    if (!section.startsWith('m=audio ')) return section;
    return section.replace(/^a=rtpmap:(\d+) opus\/48000\/2\r?\n/im, (line, payload: string) => {
      const feedback = `a=rtcp-fb:${payload} nack`;
      return new RegExp(`^${feedback}\\r?$`, 'm').test(section) ? line : `${line}${feedback}\r\n`;
    });
  });
}

/** Changes the media sections of a description; what precedes them is passed, too. */
export function mapSections(sdp: string, change: (section: string) => string): string {
  return sdp
    .split(/(?=^m=)/m)
    .map(change)
    .join('');
}
