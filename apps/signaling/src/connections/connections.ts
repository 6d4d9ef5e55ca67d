import { isDatabaseUnavailable } from '@callplane/db';
import type { ClientMessage, ServerMessage } from '@callplane/protocol';
import type { WebSocket } from 'ws';
import type { Deps } from '../deps.js';
import { join } from '../sessions/join.js';
import { resume } from '../sessions/resume.js';
import type { Sessions } from '../sessions/sessions.js';
import { Connection, type ConnectionHandler, type ConnectionSettings, type Ending } from './connection.js';
import { handleRequest, replyTo } from './handle-request.js';
import { RequestFailure } from './request-failure.js';

const CHECK_EVERY_MS = 1000;
/** Over how long clients are sent away while draining, in milliseconds: they do not come back all at once. */
const DRAIN_OVER_MS = 1500;

/** The WebSockets of this instance, and what becomes of their messages. */
export class Connections implements ConnectionHandler {
  readonly #deps: Deps;
  readonly #sessions: Sessions;
  readonly #settings: ConnectionSettings;
  readonly #connections = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;
  #counted = 0;

  constructor(deps: Deps, sessions: Sessions, settings: ConnectionSettings) {
    this.#deps = deps;
    this.#sessions = sessions;
    this.#settings = settings;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      for (const connection of this.#connections) connection.check(nowMs);
    }, CHECK_EVERY_MS);
  }

  get count(): number {
    return this.#connections.size;
  }

  accept(socket: WebSocket, address: string | undefined): void {
    this.#counted += 1;
    const connection = new Connection(`conn_${this.#counted}`, socket, this.#settings, this);
    connection.logFields['ip'] = address;
    this.#connections.add(connection);
  }

  async onMessage(connection: Connection, message: ClientMessage): Promise<void> {
    this.#deps.metrics.message(message.type);
    const session = this.#sessions.of(connection);
    if (session !== undefined) return handleRequest(this.#deps, this.#sessions, connection, session, message);
    if (message.type === 'join') return join(this.#deps, this.#sessions, connection, message);
    if (message.type === 'resume') return resume(this.#deps, this.#sessions, connection, message);
    // Only while its first message has failed: the connection is about to close.
    throw new RequestFailure('conflict');
  }

  onError(connection: Connection, message: ClientMessage, error: unknown): ServerMessage | null {
    if (error instanceof RequestFailure) {
      if (error.cause !== undefined) {
        this.#deps.logger.debug('request refused', {
          connectionId: connection.id,
          type: message.type,
          code: error.code,
          error: error.cause,
        });
      }
      return {
        type: 'error',
        ...replyTo(message),
        code: error.code,
        message: error.message,
        ...(error.details === undefined ? {} : { details: error.details }),
      };
    }
    const away = isDatabaseUnavailable(error);
    this.#deps.logger[away ? 'warn' : 'error']('request failed', {
      connectionId: connection.id,
      sessionId: connection.logFields['sessionId'],
      type: message.type,
      error,
    });
    if (this.#sessions.of(connection) === undefined || message.type === 'resume' || message.type === 'join') {
      connection.close('unavailable');
      return null;
    }
    return {
      type: 'error',
      ...replyTo(message),
      code: 'unavailable',
      message: away ? 'A dependency does not answer; try again.' : 'This could not be carried out; try again.',
    };
  }

  onEnd(connection: Connection, ending: Ending): void {
    this.#deps.metrics.ended(ending);
    this.#sessions.onConnectionEnd(connection, ending);
    // Counted until the socket is closed; the log line waits for its close code.
    void connection.closed().then(() => {
      this.#connections.delete(connection);
      this.#deps.logger.info('connection', {
        connectionId: connection.id,
        reason: ending,
        ...connection.logFields,
        durationMs: Math.round(performance.now() - connection.openedAtMs),
        messagesIn: connection.messagesIn,
        messagesOut: connection.messagesOut,
        bytesIn: connection.bytesIn,
        bytesOut: connection.bytesOut,
      });
    });
  }

  /** Sends everybody away, one after another. Resolves when all are gone. Idempotent. */
  async drain(): Promise<void> {
    const open = [...this.#connections];
    const pauseMs = Math.min(DRAIN_OVER_MS / Math.max(open.length, 1), 50);
    // Many leave together where there are many: timers do not come more often than each millisecond.
    const together = Math.ceil(open.length / (DRAIN_OVER_MS / Math.max(pauseMs, 1)));
    for (let index = 0; index < open.length; index += together) {
      for (const connection of open.slice(index, index + together)) connection.close('drain');
      if (index + together < open.length) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    await Promise.all([...this.#connections].map((connection) => connection.closed()));
    clearInterval(this.#timer);
  }
}
