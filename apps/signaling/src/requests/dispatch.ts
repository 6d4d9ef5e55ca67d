import { boundMessage } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import type { ClientMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { logRefusal } from '../connections/connection-log.js';
import type { Connection } from '../connections/connection.js';
import type { Ending } from '../connections/ending.js';
import type { MessageHandler } from '../connections/connections.js';
import { errorMessage } from '../connections/error-message.js';
import { RequestFailure } from '../connections/request-failure.js';
import { answer } from './answer.js';
import type { ArrivalDeps } from './arrival.js';
import { candidate } from './candidate.js';
import { iceServers } from './ice-servers.js';
import { join } from './join.js';
import { leave } from './leave.js';
import { message } from './message.js';
import { metadata } from './metadata.js';
import { mute } from './mute.js';
import { ping } from './ping.js';
import { publish } from './publish.js';
import { quality } from './quality.js';
import { refreshVideo } from './refresh-video.js';
import type { Handler, RequestDeps, RequestType } from './request.js';
import { resetMedia } from './reset-media.js';
import { restartIce } from './restart-ice.js';
import { resume } from './resume.js';
import { roster } from './roster.js';
import { show } from './show.js';
import { subscribe } from './subscribe.js';
import { unpublish } from './unpublish.js';
import { unsubscribe } from './unsubscribe.js';

const HANDLERS: { [T in RequestType]: Handler<T> } = {
  publish,
  unpublish,
  mute,
  subscribe,
  unsubscribe,
  answer,
  candidate,
  resetMedia,
  restartIce,
  refreshVideo,
  message,
  metadata,
  roster,
  show,
  quality,
  iceServers,
  ping,
  leave,
};

export interface DispatchDeps extends RequestDeps, ArrivalDeps {
  logger: Logger;
  metrics: ArrivalDeps['metrics'] & {
    /** Counts a valid client message before it is handled. */
    message(type: ClientMessage['type']): void;
  };
}

/** Hands each message of a client to the request's own file, and answers those that fail. */
export class Dispatch implements MessageHandler {
  readonly #deps: DispatchDeps;

  constructor(deps: DispatchDeps) {
    this.#deps = deps;
  }

  onMessage(connection: Connection, message: ClientMessage): void | Promise<void> {
    this.#deps.metrics.message(message.type);
    try {
      return this.#handle(connection, message)?.catch((error: unknown) => this.#onError(connection, message, error));
    } catch (error) {
      this.#onError(connection, message, error);
    }
  }

  onEnd(connection: Connection, ending: Ending): void {
    this.#deps.sessions.onConnectionEnd(connection, ending);
  }

  #handle(connection: Connection, message: ClientMessage): void | Promise<void> {
    const { arrivals, sessions } = this.#deps;
    const session = sessions.of(connection);
    if (message.type === 'join' || message.type === 'resume') {
      if (session !== undefined) throw new RequestFailure('conflict', 'The connection already has a session.');
      return message.type === 'join'
        ? arrivals.track(connection, null, () => join(this.#deps, connection, message))
        : arrivals.track(connection, message.sessionId, () => resume(this.#deps, connection, message));
    }
    if (session?.isConnected !== true) throw new RequestFailure('conflict', 'The session has ended.');
    const handle = HANDLERS[message.type] as Handler<RequestType>;
    return handle({ deps: this.#deps, connection, session }, message);
  }

  #onError(connection: Connection, message: ClientMessage, error: unknown): void {
    const { logger } = this.#deps;
    const { type, id } = message;
    if (error instanceof RequestFailure) {
      const { code, details, cause } = error;
      logRefusal(logger, connection, { type, code, answer: boundMessage(error.message), details, cause });
      connection.send(errorMessage(id, code, error.message, details));
      return;
    }
    const isUnavailable = isDatabaseUnavailable(error);
    const fields = { connectionId: connection.id, sessionId: connection.logFields['sessionId'], type, error };
    if (isUnavailable) logger.warn('request failed', fields);
    else logger.error('request failed', fields);
    if (type === 'join' || type === 'resume') {
      connection.close('unavailable', { cause: isUnavailable ? 'PostgreSQL is unavailable.' : 'Internal error.' });
      return;
    }
    const text = isUnavailable ? 'A dependency is unavailable. Try again.' : 'The request failed. Try again.';
    connection.send(errorMessage(id, 'unavailable', text));
  }
}
