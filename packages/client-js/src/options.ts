import { CallplaneError } from './errors.js';
import type { Platform } from './platform.js';

export interface ConnectOptions {
  /** The gateway: `wss://calls.example.com/v1/signaling`. */
  url: string;
  /** Participant token, issued by your backend over the REST API. */
  token: string;
  /** Whether to receive every track without asking; default true. */
  autoSubscribe?: boolean;
  /** Whether to be refused (`media_unavailable`) rather than join while no media server can be reached; default false. */
  requireMedia?: boolean;
  /** `relay` sends all media through TURN; default `all`. */
  iceTransportPolicy?: RTCIceTransportPolicy;
  /** How long to go on trying to reach a gateway at first; default 15000. */
  connectTimeoutMs?: number;
  /** How long to wait for the answer to a request; default 15000. */
  requestTimeoutMs?: number;
  /** Whether to leave when the page goes away; default true. */
  leaveOnPageHide?: boolean;
  /** Stand-ins for what the browser has, for tests and for Node. */
  platform?: Partial<Platform>;
}

export type Settings = Required<Omit<ConnectOptions, 'platform'>>;

export function settingsOf({ platform: _, ...options }: ConnectOptions): Settings {
  if (!/^wss?:\/\//.test(options.url))
    throw new CallplaneError('invalid_argument', '`url` must begin with wss:// or ws://');
  if (options.token === '') throw new CallplaneError('invalid_argument', '`token` is empty');
  return {
    autoSubscribe: true,
    requireMedia: false,
    iceTransportPolicy: 'all',
    connectTimeoutMs: 15_000,
    requestTimeoutMs: 15_000,
    leaveOnPageHide: true,
    ...options,
  };
}
