import { CallplaneError } from '../errors.js';
import type { Settings } from '../options.js';
import type { Platform } from '../platform.js';
import type { ClientMessage, CloseReason, ServerMessage, WelcomeMessage } from '../protocol.generated.js';
import { backoffMs } from './backoff.js';
import { pause } from './pause.js';
import { SignalingSocket, type AnswerTo, type SocketEnd } from './socket.js';

export type ConnectionState = 'connecting' | 'connected' | 'reconnecting' | 'closed';

/** Why the call is over. */
export interface CloseInfo {
  /** The gateway's reason; or `unreachable` (never joined), `connection_lost` (gave up after the grace period). */
  reason: CloseReason | 'unreachable' | 'connection_lost';
  message: string;
}

export interface SessionListener {
  onState: (state: ConnectionState) => void;
  /** Joined, or back again. What it tells replaces what was known. */
  onWelcome: (welcome: WelcomeMessage) => void;
  onMessage: (message: ServerMessage) => void;
  /** Once, at the very end. */
  onClosed: (close: CloseInfo) => void;
}

const JOIN_ATTEMPT_MS = 10_000;
const RESUME_ATTEMPT_MS = 5_000;
const PONG_WITHIN_MS = 5_000;
/** When the browser says that the network has changed, it is worth asking and not waiting long. */
const PROBE_WITHIN_MS = 2_000;
const LEAVE_WITHIN_MS = 1_000;

/** A session, over as many connections as it takes: joins, keeps alive, resumes, gives up. */
export class Session {
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #listener: SessionListener;
  readonly #untilConnected = new Set<{ resolve: () => void; reject: (error: CallplaneError) => void }>();
  #state: ConnectionState = 'connecting';
  #close: CloseInfo | undefined;
  #welcome: WelcomeMessage | undefined;
  #socket: SignalingSocket | undefined;
  #pinging: ReturnType<typeof setInterval> | undefined;
  /** Cuts the present pause or attempt short. */
  #hurry: () => void = () => undefined;

  constructor(platform: Platform, settings: Settings, listener: SessionListener) {
    this.#platform = platform;
    this.#settings = settings;
    this.#listener = listener;
    platform.page?.addEventListener('online', this.#onNetworkChange);
    platform.page?.addEventListener('offline', this.#onNetworkChange);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get closeInfo(): CloseInfo | undefined {
    return this.#close;
  }

  /** Rejects with the gateway's reason, or `unreachable`. */
  async join(): Promise<void> {
    const { token, autoSubscribe, requireMedia, connectTimeoutMs } = this.#settings;
    const giveUpAt = this.#platform.now() + connectTimeoutMs;
    const end = await this.#connect({ type: 'join', token, autoSubscribe, requireMedia }, giveUpAt, JOIN_ATTEMPT_MS);
    if (end === undefined) return;
    this.#finish(
      end.reason === undefined
        ? { reason: 'unreachable', message: 'No gateway can be reached.' }
        : { reason: end.reason, message: end.message },
    );
    throw this.#closedError();
  }

  /** Resolves once there is a connection; rejects when the call is over. */
  connected(): Promise<void> {
    if (this.#state === 'connected') return Promise.resolve();
    if (this.#state === 'closed') return Promise.reject(this.#closedError());
    return new Promise((resolve, reject) => this.#untilConnected.add({ resolve, reject }));
  }

  /** Waits for a connection, then for the answer. */
  async request<T extends ClientMessage>(message: T): Promise<AnswerTo<T>> {
    for (;;) {
      await this.connected();
      const socket = this.#socket;
      if (socket !== undefined) return socket.request(message, this.#settings.requestTimeoutMs);
    }
  }

  /** Sends without waiting for anything; dropped while there is no connection. */
  post(message: ClientMessage): void {
    if (this.#state === 'connected') this.#socket?.send(message);
  }

  /** Resolves once the gateway has let go, or after a second without it. */
  async leave(): Promise<void> {
    if (this.#state === 'closed') return;
    const socket = this.#socket;
    if (this.#state === 'connected' && socket !== undefined) {
      await socket.request({ type: 'leave' }, LEAVE_WITHIN_MS).catch(() => undefined);
    }
    this.#finish({ reason: 'left', message: 'You left.' });
  }

  async #reconnect(): Promise<void> {
    const welcome = this.#welcome;
    if (welcome === undefined) return;
    const { autoSubscribe } = this.#settings;
    const { sessionId, resumeSecret, reconnectGraceSeconds } = welcome;
    const giveUpAt = this.#platform.now() + reconnectGraceSeconds * 1000;
    const end = await this.#connect(
      { type: 'resume', sessionId, resumeSecret, autoSubscribe },
      giveUpAt,
      RESUME_ATTEMPT_MS,
    );
    if (end === undefined) return;
    this.#finish(
      end.reason === undefined
        ? { reason: 'connection_lost', message: 'The connection was lost and could not be made again in time.' }
        : { reason: end.reason, message: end.message },
    );
  }

  /**
   * Tries until a gateway welcomes this session or says no, but begins no try after `giveUpAt`.
   * Resolves to how the last try ended, or to undefined once connected.
   */
  async #connect(first: ClientMessage, giveUpAt: number, attemptMs: number): Promise<SocketEnd | undefined> {
    const isResume = first.type === 'resume';
    for (let attempt = 0; ; attempt++) {
      // At first without a pause: nobody has lost anything yet.
      if (attempt > 0 || isResume) {
        const waiting = pause(Math.min(backoffMs(attempt, this.#platform.random()), giveUpAt - this.#platform.now()));
        this.#hurry = waiting.end;
        await waiting.over;
      }
      if (this.#isClosed()) return undefined;
      const end = await this.#attempt(first, attemptMs);
      if (end === undefined || this.#isClosed()) return undefined;
      if (end.reconnect !== 'resume' || this.#platform.now() >= giveUpAt) return end;
    }
  }

  /** One connection; resolves once it is welcomed (undefined) or over. */
  #attempt(first: ClientMessage, attemptMs: number): Promise<SocketEnd | undefined> {
    return new Promise((resolve) => {
      let isWelcome = false;
      const socket = new SignalingSocket(this.#platform, this.#settings.url, () => socket.send(first), {
        onMessage: (message) => {
          if (message.type === 'welcome' && !isWelcome) {
            isWelcome = true;
            clearTimeout(tooLong);
            this.#begin(socket, message);
            resolve(undefined);
          } else if (isWelcome) this.#listener.onMessage(message);
        },
        onEnd: (end) => {
          clearTimeout(tooLong);
          if (isWelcome) this.#lost(socket, end);
          else resolve(end);
        },
      });
      const tooLong = setTimeout(() => socket.close(), attemptMs);
      this.#hurry = () => socket.close();
    });
  }

  #begin(socket: SignalingSocket, welcome: WelcomeMessage): void {
    if (this.#isClosed()) {
      socket.send({ type: 'leave' });
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#welcome = welcome;
    this.#hurry = () => undefined;
    this.#pinging = setInterval(() => this.#probe(PONG_WITHIN_MS), welcome.pingIntervalSeconds * 1000);
    const isBack = this.#state === 'reconnecting';
    this.#state = 'connected';
    this.#listener.onWelcome(welcome);
    if (isBack) this.#listener.onState('connected');
    this.#settleWaiting(({ resolve }) => resolve());
  }

  #lost(socket: SignalingSocket, end: SocketEnd): void {
    if (socket !== this.#socket || this.#isClosed()) return;
    this.#socket = undefined;
    clearInterval(this.#pinging);
    if (end.reconnect !== 'resume') {
      this.#finish({ reason: end.reason ?? 'connection_lost', message: end.message });
      return;
    }
    this.#state = 'reconnecting';
    this.#listener.onState('reconnecting');
    void this.#reconnect();
  }

  /** Asks whether the gateway is still there; ends the connection when it is not. */
  #probe(withinMs: number): void {
    const socket = this.#socket;
    socket?.request({ type: 'ping' }, withinMs).catch((error: unknown) => {
      if (error instanceof CallplaneError && error.code === 'no_answer') socket.close();
    });
  }

  readonly #onNetworkChange = (): void => {
    if (this.#state === 'connected') this.#probe(PROBE_WITHIN_MS);
    else this.#hurry();
  };

  #finish(close: CloseInfo): void {
    if (this.#isClosed()) return;
    this.#state = 'closed';
    this.#close = close;
    this.#platform.page?.removeEventListener('online', this.#onNetworkChange);
    this.#platform.page?.removeEventListener('offline', this.#onNetworkChange);
    clearInterval(this.#pinging);
    this.#socket?.close();
    this.#socket = undefined;
    this.#hurry();
    this.#listener.onState('closed');
    this.#listener.onClosed(close);
    this.#settleWaiting(({ reject }) => reject(this.#closedError()));
  }

  /** Asked anew after every wait: `leave` may have come meanwhile. */
  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #settleWaiting(settle: (waiting: { resolve: () => void; reject: (error: CallplaneError) => void }) => void): void {
    const waiting = [...this.#untilConnected];
    this.#untilConnected.clear();
    for (const one of waiting) settle(one);
  }

  #closedError(): CallplaneError {
    const { reason, message } = this.#close ?? { reason: 'closed' as const, message: 'The call is over.' };
    return new CallplaneError(reason === 'left' ? 'closed' : reason, message);
  }
}
