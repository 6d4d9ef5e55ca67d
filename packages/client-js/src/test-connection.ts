import { assertToken, gatewayUrl } from './options.js';
import type { Platform } from './platform.js';
import { SignalingSocket } from './signaling/socket.js';

export interface ConnectionTestOptions {
  /** The gateway, as of `connect()`. */
  url: string;
  /** A participant token: the gateway answers with ICE servers. Nobody joins, and a call elsewhere continues. */
  token?: string | undefined;
  /** The ICE servers to test, instead of the ones that the gateway names for the token. */
  iceServers?: RTCIceServer[] | undefined;
  /** How long the loop is measured, in seconds, from 1 to 20; default 4. */
  seconds?: number;
  /** Called when a step is over. */
  onStep?: (step: ConnectionTestStep) => void;
  signal?: AbortSignal;
  /** Replacements for browser APIs, for tests and for Node. */
  platform?: Partial<Platform>;
}

export interface ConnectionTestStep {
  /**
   * `webSocket` to the gateway; `udp` without a relay, to a high port as media servers have; a relay over UDP, TCP and
   * TLS; `loop` through relays and back to this page.
   */
  name: 'webSocket' | 'turnUdp' | 'turnTcp' | 'turnTls' | 'udp' | 'loop';
  /** `skipped`: there is nothing to test, or the step needs one that failed. */
  outcome: 'passed' | 'failed' | 'skipped';
  durationMs: number;
  /** For the user: the result, or the blocked path and the port to open. */
  message: string;
}

/** The figures of the loop. Each of its packets crosses the line up and down. */
export interface LoopFigures {
  /** Median time from the page to the relay and back, in milliseconds. */
  roundTripMs: number;
  /** Packets that did not return, of small ones at the pace of speech, in percent. */
  lossPercent: number;
  /**
   * The same of the way up, from the page, and of the way down. Undefined unless relays over UDP and over TCP or TLS work:
   * with one end over each, a direction of the loop loses packets on only one of the ways.
   */
  lossUpPercent: number | undefined;
  lossDownPercent: number | undefined;
  /**
   * The rate that a data channel reaches over the slower way, in kbit/s. Loss lowers it. At most 4,000 are tried. A relay
   * does not count for its client, so a loop cannot tell the rates of the two ways apart.
   */
  kbitPerSecond: number;
}

export interface ConnectionTest {
  steps: readonly ConnectionTestStep[];
  /** Whether signaling works, and a path for media, as far as it was tested. */
  isUsable: boolean;
  /** Undefined without a loop. */
  loop: LoopFigures | undefined;
}

/**
 * Tests the line to the gateway and the relays without joining: which paths are open, and how fast one is. Ends at most
 * 25 s after `seconds`, and sends and receives at most 0.3 MB for each of them. A blocked path is a result, not an error.
 * @throws CallplaneError `invalid_argument`, `aborted`, `unsupported` without WebRTC, and with a token why the gateway
 *   refuses it: `invalid_token`, `token_expired`, `removed`, `room_ended`, `too_many_attempts`, `unavailable`, `drain`
 */
export async function testConnection(options: ConnectionTestOptions): Promise<ConnectionTest> {
  const { runTest } = await import('./line-test/run-test.js');
  return runTest(options, { gatewayUrl, assertToken, SignalingSocket });
}
