import type { PeerTarget, WelcomeMessage } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

/** Credentials are used for this fraction of their lifetime. */
const FRESH_FOR = 0.8;

/**
 * The ICE servers of the peer connections. The credentials of the welcome serve the first connection in each direction.
 * Each later connection and each ICE restart requests its own: those that exist may have expired, and relays that were
 * lost with a network still count for them.
 */
export class IceServers {
  readonly #policies: RTCConfiguration;
  #configuration: RTCConfiguration;
  #freshUntilMs = -Infinity;
  readonly #opened = new Set<PeerTarget>();

  constructor(
    private readonly session: Session,
    private readonly now: () => number,
    iceTransportPolicy: RTCIceTransportPolicy,
  ) {
    this.#configuration = this.#policies = { iceTransportPolicy, bundlePolicy: 'max-bundle' };
  }

  /** For connections from now on. */
  get configuration(): RTCConfiguration {
    return this.#configuration;
  }

  welcome({ iceServers, iceServersTtlSeconds }: Pick<WelcomeMessage, 'iceServers' | 'iceServersTtlSeconds'>): void {
    this.#configuration = { ...this.#policies, iceServers };
    this.#freshUntilMs = this.now() + iceServersTtlSeconds * 1000 * FRESH_FOR;
  }

  /** Call this before the first negotiation of a connection. */
  async open(target: PeerTarget, connection: RTCPeerConnection): Promise<void> {
    const isFirst = !this.#opened.has(target);
    this.#opened.add(target);
    if (!isFirst || this.now() >= this.#freshUntilMs) await this.renew(target, connection);
  }

  /** Call this before an ICE restart of the connection. */
  async renew(target: PeerTarget, connection: RTCPeerConnection): Promise<void> {
    const { iceServers } = await this.session.request({ type: 'iceServers', target });
    connection.setConfiguration({ ...this.#policies, iceServers });
  }
}
