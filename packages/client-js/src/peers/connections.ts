import { CallplaneError } from '../errors.js';
import { IceServers } from '../ice-servers.js';
import type { Settings } from '../options.js';
import type { Platform } from '../platform.js';
import type { WelcomeMessage } from '../protocol.generated.js';
import { onNetworkChange } from '../signaling/network-changes.js';
import type { Session } from '../signaling/session.js';

export interface ConnectionsContext {
  platform: Platform;
  settings: Settings;
  session: Session;
  /** Called when the ICE servers have changed, for the connections that exist. */
  onChange: (configuration: RTCConfiguration) => void;
  /** Called when this machine has another network. */
  onNetworkChange: () => void;
}

/** Opens peer connections with the present ICE servers. */
export class Connections {
  readonly #context: ConnectionsContext;
  readonly #iceServers: IceServers;
  readonly #stopWatching: () => void;

  constructor(context: ConnectionsContext) {
    this.#context = context;
    const { session, platform, onChange } = context;
    this.#iceServers = new IceServers(session, platform.now, (iceServers) =>
      onChange({ ...this.#configuration(), iceServers }),
    );
    this.#stopWatching = onNetworkChange(platform, (isOnline) => {
      if (isOnline) context.onNetworkChange();
    });
  }

  welcomed(welcome: WelcomeMessage): void {
    this.#iceServers.set(welcome);
  }

  open(): RTCPeerConnection {
    const { RTCPeerConnection: Connection } = this.#context.platform;
    if (Connection === undefined)
      throw new CallplaneError('unsupported', 'WebRTC is not available in this environment.');
    return new Connection({ ...this.#configuration(), iceServers: this.#iceServers.servers });
  }

  close(): void {
    this.#iceServers.close();
    this.#stopWatching();
  }

  #configuration(): RTCConfiguration {
    const { iceTransportPolicy } = this.#context.settings;
    return { iceTransportPolicy, bundlePolicy: 'max-bundle' };
  }
}
