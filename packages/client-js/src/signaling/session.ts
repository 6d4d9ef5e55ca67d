import { abortable, CallplaneError, hasCode } from '../errors.js';
import type { Settings } from '../options.js';
import { onNetworkChange, type Platform } from '../platform.js';
import type { ClientMessage, ResumeRequest, ServerMessage, WelcomeMessage } from '../protocol.generated.js';
import { backoffMs, pause, retry } from '../wait.js';
import { closeOf, errorOf, type CloseInfo } from './close-info.js';
import { SignalingSocket, type AnswerTo, type SocketEnd } from './socket.js';

/** `waiting`: in the lobby, until your backend lets the participant in. */
export type ConnectionState = 'connecting' | 'waiting' | 'connected' | 'reconnecting' | 'closed';

export interface SessionListener {
  onState: (state: ConnectionState) => void;
  /** Joined or resumed. The welcome replaces all earlier state. */
  onWelcome: (welcome: WelcomeMessage) => void;
  onMessage: (message: ServerMessage) => void;
  onOnline: () => void;
  /** The peer connections that exist, and the last offer that was answered over the receiving one. */
  presentPeers: () => Pick<ResumeRequest, 'peers' | 'offerId'>;
  onClosed: (close: CloseInfo) => void;
}

/** How long one attempt to join or resume may take. A shorter time would double the load of a gateway with a queue. */
const ATTEMPT_MS = 10_000;
const PONG_WITHIN_MS = 5_000;
/** The deadline of a ping after the browser reports a network change, when a dead connection is likely. */
const PROBE_WITHIN_MS = 2_000;
const LEAVE_WITHIN_MS = 1_000;
/** How long the question may take whether any server answers at the URL. */
const ASK_WITHIN_MS = 800;

/** A session over any number of connections: joins, keeps alive, resumes, gives up. */
export class Session {
  state: ConnectionState = 'connecting';
  closeInfo: CloseInfo | undefined;
  readonly #waiting: (() => void)[] = [];
  readonly #over = new AbortController();
  #hasOpened = false;
  #isMoved = false;
  #welcome: WelcomeMessage | undefined;
  #socket: SignalingSocket | undefined;
  #pinging: ReturnType<typeof setInterval> | undefined;
  readonly #stopWatching: () => void;
  #hurry: () => void = () => undefined;

  constructor(
    private readonly platform: Platform,
    private readonly settings: Settings,
    private readonly listener: SessionListener,
  ) {
    this.#stopWatching = onNetworkChange(platform, (isOnline) => {
      if (this.#socket) this.#probe(PROBE_WITHIN_MS);
      else this.#hurry();
      if (isOnline) listener.onOnline();
    });
  }

  /** Rejects with the gateway's reason, `unreachable`, or `closed` after `leave()`. */
  async join(): Promise<void> {
    const { token, autoSubscribe, requireMedia, connectTimeoutMs, reachTimeoutMs } = this.settings;
    const beganAt = this.platform.now();
    // A gateway that restarts is worth the wait. Nothing at all is more likely a wrong URL.
    const giveUpAt = () => beganAt + (this.#hasOpened ? connectTimeoutMs : reachTimeoutMs);
    await this.#connect(
      () => ({ type: 'join', token, autoSubscribe, requireMedia }),
      giveUpAt,
      async () => ({
        reason: 'unreachable',
        message: this.#hasOpened
          ? `The gateway at ${this.settings.url} closes every connection.`
          : `No gateway was reached at ${this.settings.url}: ${await this.#cause()}`,
        canRejoin: true,
      }),
    );
    this.assertOpen();
  }

  /**
   * Why no WebSocket opens. Browsers do not say, so this asks whether anything answers there. They also hide answers of
   * servers that forbid other sites to load them (Cross-Origin-Resource-Policy).
   */
  async #cause(): Promise<string> {
    const abort = new AbortController();
    const tooLong = setTimeout(() => abort.abort(), ASK_WITHIN_MS);
    try {
      await fetch(this.settings.url.replace(/^ws/, 'http'), { mode: 'no-cors', signal: abort.signal });
      return 'a server answers there, but it is no gateway, or one that refuses this page. Check host, port and path (the API is no gateway), and ALLOWED_ORIGINS of the gateway.';
    } catch {
      return 'no server answers there, or one that is no gateway and hides itself from other sites. Check host and port, and whether the gateway runs.';
    } finally {
      clearTimeout(tooLong);
    }
  }

  /** @throws CallplaneError the reason, once the call is over */
  assertOpen(): void {
    if (this.closeInfo !== undefined) throw errorOf(this.closeInfo);
  }

  /** Rejects with the reason as soon as the call is over, even if the promise never settles. */
  untilOver<T>(promise: Promise<T>): Promise<T> {
    return abortable(promise, this.#over.signal);
  }

  /**
   * Waits for a connection.
   * @param lost a request over this one was lost. It may not have ended here yet, and cannot carry another request.
   */
  async connected(lost?: SignalingSocket): Promise<SignalingSocket> {
    for (;;) {
      this.assertOpen();
      if (this.#socket !== undefined && this.#socket !== lost) return this.#socket;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async request<T extends ClientMessage>(message: T): Promise<AnswerTo<T>> {
    const socket = this.#socket ?? (await this.connected());
    try {
      return await socket.request(message, this.settings.requestTimeoutMs);
    } catch (error) {
      // The connection ended with the call: no other connection follows.
      if (hasCode(error, 'connection_lost')) this.assertOpen();
      throw error;
    }
  }

  /** Sends without waiting for an answer; dropped while there is no connection. */
  post(message: ClientMessage): void {
    this.#socket?.send(message);
  }

  async leave(): Promise<void> {
    await this.#socket?.request({ type: 'leave' }, LEAVE_WITHIN_MS).catch(() => undefined);
    this.#finish({ reason: 'left', message: 'Left the room.', canRejoin: false });
  }

  async #reconnect(): Promise<void> {
    const welcome = this.#welcome;
    if (welcome === undefined) return;
    const { autoSubscribe } = this.settings;
    const { room, sessionId, resumeSecret, reconnectGraceSeconds } = welcome;
    const giveUpAt = this.platform.now() + reconnectGraceSeconds * 1000;
    const first = (): ClientMessage => ({
      type: 'resume',
      roomId: String(room['id']),
      sessionId,
      resumeSecret,
      autoSubscribe,
      ...this.listener.presentPeers(),
    });
    await this.#connect(
      first,
      () => giveUpAt,
      () => ({
        reason: 'connection_lost',
        message: 'The connection was lost, and not restored within the grace period.',
        canRejoin: true,
      }),
    );
  }

  /**
   * Tries until a gateway welcomes this session or refuses it, but starts no attempt after `giveUpAt`.
   * @param otherwise why the call is over if no gateway says why
   */
  async #connect(
    first: () => ClientMessage,
    giveUpAt: () => number,
    otherwise: () => CloseInfo | Promise<CloseInfo>,
  ): Promise<void> {
    const rest = (count: number, retryAfterMs = 0): Promise<void> => {
      const pauseMs = retryAfterMs + backoffMs(count, this.platform.random());
      const waiting = pause(Math.min(pauseMs, giveUpAt() - this.platform.now()));
      this.#hurry = waiting.end;
      return waiting.over;
    };
    // The first attempt to join or to follow a move needs no pause: no other client lost a gateway at the same moment.
    if (this.#welcome !== undefined && !this.#isMoved) await rest(0);
    await retry(async (count) => {
      if (this.#isClosed()) return undefined;
      const end = await this.#attempt(first);
      if (end === undefined) return undefined;
      // The gateway would refuse an attempt before `retryAfterMs` again.
      const { retryAfterMs } = end;
      if (end.reconnect === 'resume' && this.platform.now() + retryAfterMs < giveUpAt())
        return () => rest(count + 1, retryAfterMs);
      this.#finish(end.reason === undefined ? await otherwise() : closeOf(end, end.reason));
      return undefined;
    });
  }

  /** One connection attempt; resolves to undefined once the gateway welcomes it, or to how it ended. */
  #attempt(first: () => ClientMessage): Promise<SocketEnd | undefined> {
    return new Promise((resolve) => {
      let isWelcome = false;
      const socket = new SignalingSocket(this.platform, this.settings.url, {
        onOpen: () => {
          this.#hasOpened = true;
          if (this.#isClosed()) socket.close();
          else socket.send(first());
        },
        onMessage: (message) => {
          if (this.#isClosed()) return;
          // A second one follows the lobby.
          if (message.type === 'welcome') {
            isWelcome = true;
            clearTimeout(tooLong);
            this.#begin(socket, message);
            resolve(undefined);
          } else if (isWelcome) this.listener.onMessage(message);
        },
        onEnd: (end) => {
          clearTimeout(tooLong);
          if (isWelcome) this.#lost(socket, end);
          else resolve(end);
        },
      });
      const tooLong = setTimeout(() => socket.close(), ATTEMPT_MS);
      this.#hurry = () => {
        if (!this.#isClosed()) {
          socket.close();
          return;
        }
        // The gateway may have begun to admit this participant. It reads this message afterwards, if the socket stays
        // open until then. A socket that is not open yet stays, too: browsers log an error if a page closes it.
        socket.send({ type: 'leave' });
        resolve(undefined);
      };
    });
  }

  #begin(socket: SignalingSocket, welcome: WelcomeMessage): void {
    this.#socket = socket;
    this.#welcome = welcome;
    this.#hurry = () => undefined;
    clearInterval(this.#pinging);
    this.#pinging = setInterval(() => this.#probe(PONG_WITHIN_MS), welcome.pingIntervalSeconds * 1000);
    const before = this.state;
    this.state = welcome.waiting ? 'waiting' : 'connected';
    this.listener.onWelcome(welcome);
    if (before !== 'connecting') this.listener.onState(this.state);
    this.#wake();
  }

  #lost(socket: SignalingSocket, end: SocketEnd): void {
    if (socket !== this.#socket || this.#isClosed()) return;
    this.#socket = undefined;
    clearInterval(this.#pinging);
    if (end.reconnect !== 'resume') {
      this.#finish(closeOf(end, end.reason ?? 'connection_lost'));
      return;
    }
    this.#isMoved = end.reason === 'moved';
    this.state = 'reconnecting';
    this.listener.onState('reconnecting');
    void this.#reconnect();
  }

  #probe(withinMs: number): void {
    const socket = this.#socket;
    socket?.request({ type: 'ping' }, withinMs).catch((error: unknown) => {
      if (error instanceof CallplaneError && error.code === 'no_answer') socket.close();
    });
  }

  #finish(close: CloseInfo): void {
    if (this.#isClosed()) return;
    this.state = 'closed';
    this.closeInfo = close;
    this.#stopWatching();
    clearInterval(this.#pinging);
    this.#socket?.close();
    this.#socket = undefined;
    this.#hurry();
    this.listener.onState('closed');
    this.listener.onClosed(close);
    this.#wake();
    this.#over.abort(errorOf(close));
  }

  /** Checked again after every wait, because `leave` may have run in between. */
  #isClosed(): boolean {
    return this.state === 'closed';
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
