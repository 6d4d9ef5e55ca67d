import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, Response } from 'express';

/** Files of a folder, which a process keeps in memory. */
const FILES_MAX = 1000;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};
/** Fonts and images are compressed already. */
const COMPRESSED = new Set(['.png', '.ico', '.woff2']);

export interface StaticFile {
  type: string;
  body: Buffer;
  /** Compresses at the first call; null: the file is compressed already. */
  gzipped: (() => Promise<Buffer>) | null;
  cacheControl: string;
}

/** Answers with a file, compressed if the caller reads that. */
export async function sendFile(
  request: Request,
  response: Response,
  { type, body, gzipped, cacheControl }: StaticFile,
  headers: Record<string, string>,
): Promise<void> {
  const isGzip = gzipped !== null && request.acceptsEncodings(['gzip', 'identity']) === 'gzip';
  const sent = isGzip ? await gzipped() : body;
  response.writeHead(200, {
    ...headers,
    'cache-control': cacheControl,
    'content-type': type,
    'content-length': sent.length,
    ...(gzipped === null ? {} : { vary: 'accept-encoding' }),
    ...(isGzip ? { 'content-encoding': 'gzip' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : sent);
}

/** Reads all files of known types below a folder, by their paths in it. */
export function readFiles(folder: string): Map<string, StaticFile> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && TYPES[extname(entry.name)] !== undefined)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  if (names.length > FILES_MAX) throw new Error(`${folder} has more than ${FILES_MAX} files`);
  return new Map(names.map((name) => [name.split(sep).join('/'), readFile(folder, name)]));
}

function readFile(folder: string, name: string): StaticFile {
  const body = readFileSync(join(folder, name));
  const extension = extname(name);
  return {
    type: TYPES[extension] ?? 'application/octet-stream',
    body,
    gzipped: COMPRESSED.has(extension) ? null : compressedOnce(body),
    cacheControl: cacheControlOf(name),
  };
}

function compressedOnce(body: Buffer): () => Promise<Buffer> {
  let gzipped: Promise<Buffer> | undefined;
  return () => (gzipped ??= promisify(gzip)(body));
}

/** Names in `assets` contain a hash of their content. */
function cacheControlOf(name: string): string {
  if (name.endsWith('.html')) return 'no-store';
  return name.startsWith('assets') ? 'public, max-age=31536000, immutable' : 'no-cache';
}
