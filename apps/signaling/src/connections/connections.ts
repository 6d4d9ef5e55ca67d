import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClientMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import type { WebSocket } from 'ws';
import { logEnd, logRefusal } from './connection-log.js';
import { Connection, type ConnectionHandler, type ConnectionSettings } from './connection.js';
import type { Ending } from './ending.js';
import { Outbox } from './outbox.js';
import type { InvalidMessage } from './read-message.js';

const CHECK_EVERY_MS = 1000;
/** Time over which a drain spreads its closes, in milliseconds, so that clients do not reconnect all at once. */
const DRAIN_OVER_MS = 1500;

export interface ConnectionsDeps {
  logger: Logger;
  metrics: {
    /** Counts an ended connection. */
    ended(ending: Ending): void;
    /** Counts a frame to a client. */
    frame(isShared: boolean): void;
  };
}

/** Handles the messages of all connections. Must neither throw nor reject. */
export interface MessageHandler {
  onMessage(connection: Connection, message: ClientMessage): void | Promise<void>;
  /** Called once for each connection, as soon as its end is known. The socket may still be closing. */
  onEnd(connection: Connection, ending: Ending): void;
}

/** The open WebSockets of this instance. */
export class Connections implements ConnectionHandler {
  readonly #deps: ConnectionsDeps;
  readonly #settings: ConnectionSettings;
  readonly #handler: MessageHandler;
  readonly #connections = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;
  #accepted = 0;

  constructor(deps: ConnectionsDeps, settings: ConnectionSettings, handler: MessageHandler) {
    this.#deps = deps;
    this.#settings = settings;
    this.#handler = handler;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      for (const connection of this.#connections) connection.check(nowMs);
      Outbox.cutStalled();
    }, CHECK_EVERY_MS);
  }

  /** Number of WebSockets. One counts until its socket is closed. */
  get count(): number {
    return this.#connections.size;
  }

  accept(sockets: { webSocket: WebSocket; socket: Duplex }, address: string | undefined): Connection {
    this.#accepted += 1;
    const connection = new Connection({ id: `conn_${this.#accepted}`, address }, sockets, this.#settings, this);
    this.#connections.add(connection);
    return connection;
  }

  onMessage(connection: Connection, message: ClientMessage): void | Promise<void> {
    return this.#handler.onMessage(connection, message);
  }

  onSend(isShared: boolean): void {
    this.#deps.metrics.frame(isShared);
  }

  onInvalid(connection: Connection, { type, details }: InvalidMessage): void {
    logRefusal(this.#deps.logger, connection, { type, code: 'invalid_message', details });
  }

  onEnd(connection: Connection, ending: Ending): void {
    this.#deps.metrics.ended(ending);
    this.#handler.onEnd(connection, ending);
    void connection.closed().then(() => this.#connections.delete(connection));
    void logEnd(this.#deps.logger, connection, ending);
  }

  /**
   * Closes connections with the reason `drain`, spread over DRAIN_OVER_MS, so that their clients go to other instances.
   * @param isMeant whether to close a connection
   */
  async sendAway(isMeant: (connection: Connection) => boolean = () => true): Promise<void> {
    const open = [...this.#connections].filter((connection) => connection.isOpen && isMeant(connection));
    const pauseMs = Math.min(DRAIN_OVER_MS / Math.max(open.length, 1), 50);
    // Timers fire at most once per millisecond, so that many connections have to close in groups.
    const together = Math.ceil(open.length / (DRAIN_OVER_MS / Math.max(pauseMs, 1)));
    for (let index = 0; index < open.length; index += together) {
      for (const connection of open.slice(index, index + together))
        connection.close('drain', { cause: 'This gateway drains.' });
      if (index + together < open.length) await delay(pauseMs);
    }
  }

  /** Resolves when all sockets are closed. Call it after {@link sendAway}. */
  async close(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => connection.closed()));
    clearInterval(this.#timer);
  }
}
