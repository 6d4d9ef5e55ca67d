import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from './bootstrap.js';

/** A receiver's reaction to a request: it answers after a time, never answers, or breaks the connection. */
export type Reaction = { status: number; afterMs: number } | 'hang' | 'reset';

/** A POST that a receiver has read. */
export interface Arrival {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Follows one request. */
export interface Watch {
  /** Its body has arrived. @returns the receiver's reaction. */
  arrived(arrival: Arrival): Reaction;
  /** @param status null: the connection ended before the answer. */
  ended(status: number | null, arrival: Arrival): void;
}

/** Longer than the deadline of a delivery, in milliseconds. */
const HANG_MS = 60_000;

export abstract class Receiver {
  readonly #server: Server;
  #url = '';

  constructor() {
    this.#server = createServer((request, response) => {
      const { arrived, ended } = this.watch();
      const path = request.url ?? '';
      const chunks: Buffer[] = [];
      const arrival = (): Arrival => ({ path, headers: request.headers, body: Buffer.concat(chunks) });
      request.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => undefined).on('close', () => ended(null, arrival()));
      request.on('end', () => react(response, arrived(arrival()), (status) => ended(status, arrival())));
    });
    this.#server.keepAliveTimeout = HANG_MS;
  }

  /** Called when the head of a request has arrived. */
  protected abstract watch(): Watch;

  /** @param publicUrl how the service reaches it; by default over 127.0.0.1. */
  async listen(publicUrl?: string): Promise<string> {
    const given = publicUrl === undefined ? null : new URL(publicUrl);
    const [port, host] = given === null ? [0, '127.0.0.1'] : [Number(given.port || '80'), '0.0.0.0'];
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(new Failure(`the receiver cannot start: ${error.message}`)));
      this.#server.listen(port, host, resolve);
    });
    this.#url = given?.origin ?? `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this.#url;
  }

  urlOf(path: string): string {
    return `${this.#url}${path}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function react(response: ServerResponse, reaction: Reaction, answered: (status: number) => void): void {
  if (reaction === 'reset') response.destroy();
  else if (reaction === 'hang') setTimeout(() => response.destroy(), HANG_MS).unref();
  else {
    const { status, afterMs } = reaction;
    const answer = (): void => {
      if (response.destroyed) return;
      response.writeHead(status).end();
      answered(status);
    };
    if (afterMs === 0) answer();
    else setTimeout(answer, afterMs);
  }
}
