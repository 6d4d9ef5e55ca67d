import { invalidArgument } from './errors.js';
import type { Platform } from './platform.js';
import { assertToken } from './token.js';

export interface ConnectOptions {
  /** The gateway: `wss://calls.example.com/v1/signaling`. */
  url: string;
  /** Participant token, issued by your backend over the REST API. */
  token: string;
  /** Receive every track without subscribing; default true. */
  autoSubscribe?: boolean;
  /**
   * Receive of each video what the page displays and the network carries: lower layers, or nothing. Layers that you
   * choose with `subscribe()` are upper bounds. Default true.
   */
  adaptive?: boolean;
  /** Reject the join with `media_unavailable` if no media server is available; default false. */
  requireMedia?: boolean;
  /** `relay` sends all media through TURN; default `all`. */
  iceTransportPolicy?: RTCIceTransportPolicy;
  /** How long the first connection may take, retries included, in milliseconds; default 15000. */
  connectTimeoutMs?: number;
  /** How long to wait for the answer to a request, in milliseconds; default 15000. */
  requestTimeoutMs?: number;
  /** Leave the call when the page is closed; default true. */
  leaveOnPageHide?: boolean;
  /** Gives up the join. A call that has begun goes on: use `leave()`. */
  signal?: AbortSignal;
  /** Replacements for browser APIs, for tests and for Node. */
  platform?: Partial<Platform>;
}

export type Settings = Required<Omit<ConnectOptions, 'platform' | 'signal'>>;

/** @throws CallplaneError `invalid_argument`, `invalid_token` or `token_expired`, before anything is sent. */
export function settingsOf({ platform: _, signal: _signal, ...options }: ConnectOptions, nowMs: number): Settings {
  if (!/^wss?:\/\//.test(options.url)) throw invalidArgument('url', 'must begin with wss:// or ws://');
  if (typeof options.token !== 'string' || options.token === '') throw invalidArgument('token', 'must not be empty');
  assertToken(options.token, nowMs);
  return {
    autoSubscribe: true,
    adaptive: true,
    requireMedia: false,
    iceTransportPolicy: 'all',
    connectTimeoutMs: 15_000,
    requestTimeoutMs: 15_000,
    leaveOnPageHide: true,
    ...options,
  };
}
