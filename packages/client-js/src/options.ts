import type { EncryptionOptions } from './encryption/options.js';
import { CallplaneError, invalidArgument } from './errors.js';
import type { Platform } from './platform.js';

export interface ConnectOptions {
  /** The gateway: `wss://calls.example.com`, or with a path of its own. */
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
  /**
   * How long the first connection may take, retries included, in milliseconds; default 15000, and 4000 while nothing at
   * `url` accepts a WebSocket.
   */
  connectTimeoutMs?: number;
  /** How long to wait for the answer to a request, in milliseconds; default 15000. */
  requestTimeoutMs?: number;
  /** Leave the call when the page is closed; default true. */
  leaveOnPageHide?: boolean;
  /** Gives up the join. A call that has begun goes on: use `leave()`. */
  signal?: AbortSignal;
  /** Encrypts media and messages end to end. A room with `encryption: required` needs it, any other one refuses it. */
  encryption?: EncryptionOptions;
  /** Replacements for browser APIs, for tests and for Node. */
  platform?: Partial<Platform>;
}

export type Settings = Required<Omit<ConnectOptions, 'platform' | 'signal' | 'encryption'>> & {
  encryption?: EncryptionOptions;
  /** The share of `connectTimeoutMs` in which a WebSocket must open for the first time. */
  reachTimeoutMs: number;
};

const REACH_TIMEOUT_MS = 4_000;

/** @throws CallplaneError `invalid_argument` or `invalid_token`, before anything is sent. */
export function settingsOf({ platform: _, signal: _signal, ...options }: ConnectOptions): Settings {
  const url = gatewayUrl(options.url);
  if (typeof options.token !== 'string' || options.token === '') throw invalidArgument('token', 'must not be empty');
  assertToken(options.token);
  return {
    autoSubscribe: true,
    adaptive: true,
    requireMedia: false,
    iceTransportPolicy: 'all',
    connectTimeoutMs: 15_000,
    reachTimeoutMs: options.connectTimeoutMs ?? REACH_TIMEOUT_MS,
    requestTimeoutMs: 15_000,
    leaveOnPageHide: true,
    ...options,
    url,
  };
}

/** The gateway of a host is at its usual path unless the URL names another one. */
export function gatewayUrl(text: string): string {
  try {
    const url = new URL(text);
    if (/^wss?:$/.test(url.protocol)) {
      if (url.pathname === '/') url.pathname = '/v1/signaling';
      return url.href;
    }
  } catch {
    // No URL: refused like one of another scheme.
  }
  throw invalidArgument('url', `must be the gateway, like wss://calls.example.com, not "${text}"`);
}

const CHARS_MAX = 8192;

/**
 * Checks what no gateway would accept. Only a gateway can check the rest: the clock of this machine may be wrong.
 * @throws CallplaneError `invalid_token`
 */
export function assertToken(token: string): void {
  if (/^rtc_[sp]k_/.test(token))
    throw invalid('An API key is not a participant token. Request a token from your backend; never ship the key.');
  if (token.length > CHARS_MAX || !hasClaims(token))
    throw invalid('The token is not a participant token (a JWT). Pass the field `token` of the REST API’s answer.');
}

function hasClaims(token: string): boolean {
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token) ?? [];
  if (payload === undefined) return false;
  try {
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof claims === 'object' && claims !== null;
  } catch {
    return false;
  }
}

function invalid(message: string): CallplaneError {
  return new CallplaneError('invalid_token', message);
}
