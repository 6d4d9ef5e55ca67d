import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from '../bootstrap.js';
import type { HistoryWriter } from './history-writer.js';
import type { Random } from './random.js';
import type { DeliveryLine } from './history.js';

/** Longer than the deadline of a delivery, in milliseconds. */
const HANG_MS = 8000;
const SLOW_MS = 1500;

export interface Hook {
  tenant: string;
  /** How often it does not answer with 200. */
  faulty: number;
  /** The signing secrets by version. */
  secrets: Map<string, string>;
}

/** Receives the deliveries of all endpoints, and writes them down. */
export class Receiver {
  /** By path. */
  readonly hooks = new Map<string, Hook>();
  /** From the end of the faults on, it answers every delivery with 200. */
  isCalm = false;
  received = 0;
  readonly #server: Server;
  readonly #history: HistoryWriter;
  readonly #random: Random;
  #url = '';

  constructor(history: HistoryWriter, random: Random) {
    [this.#history, this.#random] = [history, random];
    this.#server = createServer((request, response) => this.#receive(request, response));
  }

  /** @param publicUrl how the service reaches it; by default over 127.0.0.1. */
  async listen(publicUrl?: string): Promise<void> {
    const given = publicUrl === undefined ? null : new URL(publicUrl);
    const [port, host] = given === null ? [0, '127.0.0.1'] : [Number(given.port || '80'), '0.0.0.0'];
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(new Failure(`the receiver cannot start: ${error.message}`)));
      this.#server.listen(port, host, resolve);
    });
    this.#url = given?.origin ?? `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  urlOf(path: string): string {
    return `${this.#url}${path}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const startMs = this.#history.nowMs;
    const path = request.url ?? '';
    const hook = this.hooks.get(path);
    const chunks: Buffer[] = [];
    let receivedMs: number | null = null;
    let isWritten = false;
    const write = (answer: DeliveryLine['answer'], answeredMs: number | null): void => {
      if (isWritten) return;
      isWritten = true;
      const body = Buffer.concat(chunks);
      const headers = Object.fromEntries(
        Object.entries(request.headers).filter(([name]) => !['connection', 'host'].includes(name)),
      ) as Record<string, string>;
      this.#history.write('deliveries', {
        startMs,
        receivedMs,
        answeredMs,
        tenant: hook?.tenant ?? '',
        url: this.urlOf(path),
        headers,
        body: body.toString('utf8'),
        bodySha256: createHash('sha256').update(body).digest('hex'),
        verified: hook === undefined ? 'no such endpoint' : verify(headers, body, hook.secrets),
        answer,
      });
    };
    request.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', () => undefined).on('close', () => write('reset', null));
    request.on('end', () => {
      receivedMs = this.#history.nowMs;
      this.received += 1;
      const answer = (status: number): void => {
        if (response.destroyed) return;
        response.writeHead(status).end();
        write(status, this.#history.nowMs);
      };
      const fault = !this.isCalm && this.#random.chance(hook?.faulty ?? 0) ? this.#random.from(0, 4) : null;
      if (fault === 0) response.destroy();
      else if (fault === 1) {
        write('hang', null);
        setTimeout(() => response.destroy(), HANG_MS);
      } else if (fault === 2) setTimeout(() => answer(200), SLOW_MS);
      else answer(fault === null ? 200 : fault === 3 ? 503 : 500);
    });
  }
}

/** Checks the signature as the specification says, without Callplane's own code. */
function verify(headers: Record<string, string>, body: Buffer, secrets: ReadonlyMap<string, string>): true | string {
  const [, timestamp, signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '') ?? [];
  if (timestamp === undefined) return 'malformed signature header';
  const secret = secrets.get(headers['x-service-signing-key-version'] ?? '');
  if (secret === undefined) return 'unknown version of the signing key';
  const { 'x-service-delivery-id': id = '', 'x-service-replay-count': count = '' } = headers;
  const signed = createHmac('sha256', secret).update(`${timestamp}.${id}.${count}.`).update(body).digest();
  return timingSafeEqual(signed, Buffer.from(signature, 'hex')) ? true : 'wrong signature';
}
