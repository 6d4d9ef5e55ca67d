import type { IceServer } from '@callplane/server/requests';
import { nowMs } from '../../clock.js';
import { CONSOLE_LIMITS } from '../../limits.js';

export interface RelayResult {
  url: string;
  /** The address that the TURN server allocated, or why it did not. */
  outcome: { name: 'allocated'; address: string; tookMs: number } | { name: 'failed'; why: string };
}

/** @returns the TURN addresses among ICE servers, each with its own credentials */
export function turnServersOf(servers: readonly IceServer[]): { url: string; server: RTCIceServer }[] {
  return servers.flatMap(({ urls, username = '', credential = '' }) =>
    urls.filter((url) => url.startsWith('turn')).map((url) => ({ url, server: { urls: [url], username, credential } })),
  );
}

/** Asks one TURN server for a relay, as a call would. No other way of connecting is tried. */
export function allocateRelay({ url, server }: { url: string; server: RTCIceServer }): Promise<RelayResult> {
  const startedAt = nowMs();
  const connection = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: 'relay' });
  return new Promise<RelayResult>((resolve) => {
    let why = `The server did not answer within ${CONSOLE_LIMITS.turnTestMs / 1_000} s.`;
    const end = (outcome: RelayResult['outcome']) => {
      clearTimeout(timer);
      connection.close();
      resolve({ url, outcome });
    };
    const timer = setTimeout(() => end({ name: 'failed', why }), CONSOLE_LIMITS.turnTestMs);
    connection.onicecandidate = ({ candidate }) => {
      if (candidate === null) {
        end({ name: 'failed', why });
      } else if (candidate.type === 'relay') {
        const address = `${candidate.address ?? '?'}:${candidate.port ?? '?'}`;
        end({ name: 'allocated', address, tookMs: nowMs() - startedAt });
      }
    };
    connection.onicecandidateerror = ({ errorCode, errorText }) => {
      why = `${errorCode} ${errorText}`.trim();
    };
    // A data channel makes the browser gather candidates without asking for devices.
    connection.createDataChannel('turn-test');
    connection
      .createOffer()
      .then((offer) => connection.setLocalDescription(offer))
      .catch((error: unknown) => end({ name: 'failed', why: String(error) }));
  });
}
