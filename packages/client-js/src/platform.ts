/** The part of a WebSocket that the SDK uses; both the browser's and the one of the `ws` package have it. */
export interface WebSocketLike {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

/** The SDK's environment. In Node, pass the constructors of `ws` and `@roamhq/wrtc`. */
export interface Platform {
  WebSocket: new (url: string, protocols: string[]) => WebSocketLike;
  /** Without it the call has everything but media. */
  RTCPeerConnection: (new (configuration?: RTCConfiguration) => RTCPeerConnection) | undefined;
  mediaDevices: (Pick<MediaDevices, 'getUserMedia'> & Partial<MediaDevices>) | undefined;
  /** Emits `online`, `offline` and `pagehide`. */
  page: Pick<EventTarget, 'addEventListener' | 'removeEventListener'> | undefined;
  /** `navigator.connection`, where the browser has it: emits `change` when its `type` changes, from Wi-Fi to cellular. */
  network: (Pick<EventTarget, 'addEventListener'> & { readonly type?: string }) | undefined;
  /** From 0 to 1. */
  random: () => number;
  /** Milliseconds of a clock that nobody sets: `Date.now` is none. */
  now: () => number;
}

export function platformOf(given: Partial<Platform> = {}): Platform {
  const here = globalThis as Partial<typeof globalThis>;
  return {
    WebSocket: here.WebSocket as unknown as Platform['WebSocket'],
    RTCPeerConnection: here.RTCPeerConnection,
    mediaDevices: (here.navigator as Partial<Navigator> | undefined)?.mediaDevices,
    page: here.window,
    network: (here.navigator as { connection?: Platform['network'] } | undefined)?.connection,
    random: Math.random,
    now: () => performance.now(),
    ...given,
  };
}

/** An entry of WebRTC's statistics. Browsers leave out the fields that they do not support. */
export type StatsEntry = { id: string; timestamp: number; remoteTimestamp?: number; candidateType?: string } & Partial<
  RTCInboundRtpStreamStats & RTCOutboundRtpStreamStats & RTCIceCandidatePairStats
>;

export function entriesOf(report: RTCStatsReport): StatsEntry[] {
  return [...(report as unknown as Map<string, StatsEntry>).values()];
}

/** Packets of an inbound stream that did not arrive at all. With RTX, `packetsLost` also counts packets whose repetition arrived. */
export function lostOf({ packetsLost = 0, retransmittedPacketsReceived = 0, rtxSsrc }: StatsEntry): number {
  return rtxSsrc === undefined ? packetsLost : packetsLost - retransmittedPacketsReceived;
}

/**
 * Calls `listener` when this machine has lost its network, has one again or has another one.
 * @returns a function that ends this
 */
export function onNetworkChange(
  { page, network }: Pick<Platform, 'page' | 'network'>,
  listener: (isOnline: boolean) => void,
): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  page?.addEventListener('online', () => listener(true), { signal });
  page?.addEventListener('offline', () => listener(false), { signal });
  let type = network?.type;
  const onChange = () => {
    // The same event reports every new estimate of the bandwidth.
    if (network?.type === type) return;
    type = network?.type;
    listener(type !== 'none');
  };
  network?.addEventListener('change', onChange, { signal });
  return () => controller.abort();
}
