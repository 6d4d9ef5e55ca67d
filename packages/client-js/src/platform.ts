/** What the SDK needs of a WebSocket: the browser's has it, and that of the `ws` package. */
export interface WebSocketLike {
  readonly readyState: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

/** What the SDK takes from its surroundings; in Node the constructors of `ws` and `@roamhq/wrtc` can stand in. */
export interface Platform {
  WebSocket: new (url: string, protocols: string) => WebSocketLike;
  /** Without it the call has everything but media. */
  RTCPeerConnection: (new (configuration?: RTCConfiguration) => RTCPeerConnection) | undefined;
  mediaDevices: Pick<MediaDevices, 'getUserMedia' | 'getDisplayMedia'> | undefined;
  /** Tells `online`, `offline` and `pagehide`. */
  page: Pick<EventTarget, 'addEventListener' | 'removeEventListener'> | undefined;
  /** From 0 to 1. */
  random: () => number;
  /** Milliseconds since 1970. */
  now: () => number;
}

export function platformOf(given: Partial<Platform> = {}): Platform {
  const here = globalThis as Partial<typeof globalThis>;
  return {
    WebSocket: here.WebSocket as unknown as Platform['WebSocket'],
    RTCPeerConnection: here.RTCPeerConnection,
    mediaDevices: (here.navigator as Partial<Navigator> | undefined)?.mediaDevices,
    page: here.window,
    random: Math.random,
    now: Date.now,
    ...given,
  };
}
