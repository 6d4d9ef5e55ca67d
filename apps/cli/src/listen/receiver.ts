import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { DELIVERY_DEADLINE_SECONDS, signDelivery, SIGNATURE_CONTRACT } from '@callplane/core';

/** Bytes of an answer that are read and shown. */
const BODY_BYTES_MAX = 200;

export interface LocalDelivery {
  deliveryId: string;
  body: string;
  secret: string;
  timestampUnixSeconds: number;
}

export interface Answer {
  /** Null if the receiver did not answer. */
  statusCode: number | null;
  /** Why there was no answer, such as `ECONNREFUSED`. */
  errorCode: string | null;
  durationMs: number;
  /** The first bytes of the answer, as text. */
  body: string;
}

/** Sends one event to the local receiver, with the headers, the signature and the deadline of a real delivery. */
export function sendTo(url: URL, delivery: LocalDelivery, signal: AbortSignal): Promise<Answer> {
  const startedAt = performance.now();
  const answer = (fields: Partial<Answer>): Answer => ({
    statusCode: null,
    errorCode: null,
    body: '',
    durationMs: Math.round(performance.now() - startedAt),
    ...fields,
  });
  const deadline = AbortSignal.timeout(DELIVERY_DEADLINE_SECONDS * 1000);
  return new Promise((resolve) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, {
      method: 'POST',
      headers: headersOf(delivery),
      // A connection of its own for each event: a receiver that is restarted leaves no dead one behind.
      agent: false,
      signal: AbortSignal.any([signal, deadline]),
    });
    request.once('error', (error: NodeJS.ErrnoException) =>
      resolve(answer({ errorCode: deadline.aborted ? 'TIMEOUT' : (error.code ?? 'FAILED') })),
    );
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const finish = (): void => {
        const body = Buffer.concat(chunks).subarray(0, BODY_BYTES_MAX).toString('utf8');
        resolve(answer({ statusCode: response.statusCode ?? null, body }));
        request.destroy();
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes >= BODY_BYTES_MAX) finish();
      });
      // The status decides, whether or not the body ends, as with a real delivery.
      response.once('end', finish);
      response.once('error', finish);
    });
    request.end(delivery.body);
  });
}

function headersOf({ deliveryId, body, secret, timestampUnixSeconds }: LocalDelivery): Record<string, string | number> {
  const replayCount = 0;
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'Callplane-Webhooks/1',
    [SIGNATURE_CONTRACT.signatureHeader]: signDelivery({ secret, timestampUnixSeconds, deliveryId, replayCount, body }),
    [SIGNATURE_CONTRACT.deliveryIdHeader]: deliveryId,
    [SIGNATURE_CONTRACT.replayCountHeader]: String(replayCount),
    [SIGNATURE_CONTRACT.secretVersionHeader]: '1',
  };
}
