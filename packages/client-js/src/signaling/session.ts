import { CallplaneError } from '../errors.js';
import type { Settings } from '../options.js';
import type { Platform } from '../platform.js';
import type {
  ClientMessage,
  CloseReason,
  ResumeRequest,
  ServerMessage,
  WelcomeMessage,
} from '../protocol.generated.js';
import { backoffMs } from './backoff.js';
import { onNetworkChange } from './network-changes.js';
import { pause } from './pause.js';
import { SignalingSocket, type AnswerTo, type SocketEnd } from './socket.js';

export type ConnectionState = 'connecting' | 'connected' | 'reconnecting' | 'closed';

/** Why the call is over. */
export interface CloseInfo {
  /** The gateway's reason; or `unreachable` (never joined), `connection_lost` (gave up after the grace period). */
  reason: CloseReason | 'unreachable' | 'connection_lost';
  message: string;
}

/** The peer connections that exist, and the last offer that was answered over the receiving one. */
export type PresentPeers = Pick<ResumeRequest, 'peers' | 'offerId'>;

export interface SessionListener {
  onState: (state: ConnectionState) => void;
  /** Joined or resumed. The welcome replaces all earlier state. */
  onWelcome: (welcome: WelcomeMessage) => void;
  onMessage: (message: ServerMessage) => void;
  presentPeers: () => PresentPeers;
  /** Called once, at the very end. */
  onClosed: (close: CloseInfo) => void;
}

/** How long one attempt to join or resume may take. A shorter time would double the load of a gateway with a queue. */
const ATTEMPT_MS = 10_000;
const PONG_WITHIN_MS = 5_000;
/** The deadline of a ping after the browser reports a network change, when a dead connection is likely. */
const PROBE_WITHIN_MS = 2_000;
const LEAVE_WITHIN_MS = 1_000;

/** The first message of a connection, once it is open. */
type FirstMessage = () => ClientMessage;

/** A session over any number of connections: joins, keeps alive, resumes, gives up. */
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
  readonly #stopWatching: () => void;
  /** Cuts the present pause or attempt short. */
  #hurry: () => void = () => undefined;

  constructor(platform: Platform, settings: Settings, listener: SessionListener) {
    this.#platform = platform;
    this.#settings = settings;
    this.#listener = listener;
    this.#stopWatching = onNetworkChange(platform, () => {
      if (this.#state === 'connected') this.#probe(PROBE_WITHIN_MS);
      else this.#hurry();
    });
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
    const end = await this.#connect(() => ({ type: 'join', token, autoSubscribe, requireMedia }), giveUpAt, 'join');
    if (end === undefined) return;
    this.#finish(
      end.reason === undefined
        ? { reason: 'unreachable', message: 'No gateway is reachable.' }
        : { reason: end.reason, message: end.message },
    );
    throw this.#closedError();
  }

  /** @throws CallplaneError if the call is over */
  assertOpen(): void {
    if (this.#isClosed()) throw this.#closedError();
  }

  /** Resolves once a connection is open; rejects if the call is over. */
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

  /** Sends without waiting for an answer; dropped while there is no connection. */
  post(message: ClientMessage): void {
    if (this.#state === 'connected') this.#socket?.send(message);
  }

  /** Resolves when the gateway has acknowledged, or after one second. */
  async leave(): Promise<void> {
    if (this.#state === 'closed') return;
    const socket = this.#socket;
    if (this.#state === 'connected' && socket !== undefined) {
      await socket.request({ type: 'leave' }, LEAVE_WITHIN_MS).catch(() => undefined);
    }
    this.#finish({ reason: 'left', message: 'Left the room.' });
  }

  async #reconnect(): Promise<void> {
    const welcome = this.#welcome;
    if (welcome === undefined) return;
    const { autoSubscribe } = this.#settings;
    const { room, sessionId, resumeSecret, reconnectGraceSeconds } = welcome;
    const giveUpAt = this.#platform.now() + reconnectGraceSeconds * 1000;
    const first = (): ClientMessage => ({
      type: 'resume',
      roomId: String(room['id']),
      sessionId,
      resumeSecret,
      autoSubscribe,
      ...this.#listener.presentPeers(),
    });
    const end = await this.#connect(first, giveUpAt, 'resume');
    if (end === undefined) return;
    this.#finish(
      end.reason === undefined
        ? {
            reason: 'connection_lost',
            message: 'The connection was lost and could not be restored within the grace period.',
          }
        : { reason: end.reason, message: end.message },
    );
  }

  /**
   * Tries until a gateway welcomes this session or refuses it, but starts no attempt after `giveUpAt`.
   * @returns how the last attempt ended, or undefined once connected.
   */
  async #connect(first: FirstMessage, giveUpAt: number, type: 'join' | 'resume'): Promise<SocketEnd | undefined> {
    let retryAfterMs = 0;
    for (let attempt = 0; ; attempt++) {
      // The first join attempt needs no pause: no other client lost a gateway at the same moment.
      if (attempt > 0 || type === 'resume') {
        const pauseMs = retryAfterMs + backoffMs(attempt, this.#platform.random());
        const waiting = pause(Math.min(pauseMs, giveUpAt - this.#platform.now()));
        this.#hurry = waiting.end;
        await waiting.over;
      }
      if (this.#isClosed()) return undefined;
      const end = await this.#attempt(first);
      if (end === undefined || this.#isClosed()) return undefined;
      // The gateway would refuse an attempt before `retryAfterMs` again.
      ({ retryAfterMs } = end);
      if (end.reconnect !== 'resume' || this.#platform.now() + retryAfterMs >= giveUpAt) return end;
    }
  }

  /** One connection attempt; resolves to undefined once the gateway welcomes it, or to how it ended. */
  #attempt(first: FirstMessage): Promise<SocketEnd | undefined> {
    return new Promise((resolve) => {
      let isWelcome = false;
      const begin = () => socket.send(first());
      const socket = new SignalingSocket(this.#platform, this.#settings.url, begin, {
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
      const tooLong = setTimeout(() => socket.close(), ATTEMPT_MS);
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
    this.#endWaiting(({ resolve }) => resolve());
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

  /** Pings the gateway; closes the connection if no answer comes in time. */
  #probe(withinMs: number): void {
    const socket = this.#socket;
    socket?.request({ type: 'ping' }, withinMs).catch((error: unknown) => {
      if (error instanceof CallplaneError && error.code === 'no_answer') socket.close();
    });
  }

  #finish(close: CloseInfo): void {
    if (this.#isClosed()) return;
    this.#state = 'closed';
    this.#close = close;
    this.#stopWatching();
    clearInterval(this.#pinging);
    this.#socket?.close();
    this.#socket = undefined;
    this.#hurry();
    this.#listener.onState('closed');
    this.#listener.onClosed(close);
    this.#endWaiting(({ reject }) => reject(this.#closedError()));
  }

  /** Checked again after every wait, because `leave` may have run in between. */
  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #endWaiting(end: (waiting: { resolve: () => void; reject: (error: CallplaneError) => void }) => void): void {
    const waiting = [...this.#untilConnected];
    this.#untilConnected.clear();
    for (const one of waiting) end(one);
  }

  #closedError(): CallplaneError {
    const { reason, message } = this.#close ?? { reason: 'closed' as const, message: 'The call is over.' };
    return new CallplaneError(reason === 'left' ? 'closed' : reason, message);
  }
}
