import { metadataSizeFailure, parseJsonBody, PublicError, storedJsonBytes, type ErrorDetail } from '@callplane/core';
import type { Request } from 'express';

/** Maximum size of a request body, in bytes. */
const BODY_BYTES_MAX = 64 * 1024;

export interface ParsedBody {
  /** undefined if the request has no body. */
  value: unknown;
  details: ErrorDetail[];
}

/**
 * Reads and parses a JSON body. Checks in this order: the media type, the size, the syntax, the size of the metadata.
 * @throws PublicError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, MALFORMED_JSON
 */
export async function readJsonBody(request: Request): Promise<ParsedBody> {
  const length = request.headers['content-length'];
  const hasBody = request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  if (!hasBody) return { value: undefined, details: [] };
  if (!isUtf8Json(request)) throw new PublicError('UNSUPPORTED_MEDIA_TYPE');
  const bytes = await readBytes(request, Number(length ?? 0));
  if (bytes.length === 0) return { value: undefined, details: [] };
  const text = decodeUtf8(bytes);
  const parsed = text === null ? null : parseJsonBody(text);
  if (parsed?.ok !== true) throw new PublicError('MALFORMED_JSON');
  const tooLarge = metadataSizeFailure(bytesOfMetadata(parsed.value));
  if (tooLarge !== null) {
    throw new PublicError('PAYLOAD_TOO_LARGE', {
      message: 'The metadata is too large.',
      details: [{ path: 'body.metadata', message: tooLarge }],
    });
  }
  return { value: parsed.value, details: parsed.details };
}

function isUtf8Json(request: Request): boolean {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return false;
  const [type = '', ...parameters] = (request.headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') return false;
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/.exec(parameter)?.[1])
    .find((c) => c !== undefined);
  return charset === undefined || charset === 'utf-8' || charset === 'utf8';
}

function readBytes(request: Request, announced: number): Promise<Buffer> {
  if (announced > BODY_BYTES_MAX) return Promise.reject(tooLarge());
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= BODY_BYTES_MAX) {
        chunks.push(chunk);
        return;
      }
      request.removeAllListeners('data');
      request.pause();
      reject(tooLarge());
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => {
      // Create the error only if it is needed: capturing its stack costs more than reading a small body.
      if (!request.complete) reject(new PublicError('MALFORMED_JSON', { message: 'The request was aborted.' }));
    });
  });
}

function tooLarge(): PublicError {
  return new PublicError('PAYLOAD_TOO_LARGE', {
    message: `The request body is larger than ${BODY_BYTES_MAX} bytes.`,
    // Close the connection instead of reading the rest of the body.
    headers: { connection: 'close' },
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** Size of the body's `metadata`, serialised as a read returns it, in bytes. 0 without metadata. */
function bytesOfMetadata(body: unknown): number {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'metadata')) return 0;
  return storedJsonBytes((body as { metadata: unknown }).metadata);
}
