import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { parseUrl, PublicError } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf, isRead } from '../http/request-context.js';
import { pageSecurityHeaders } from '../http/respond.js';

/** Files of the console, which a process keeps in memory. */
const FILES_MAX = 500;
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

interface File {
  type: string;
  body: Buffer;
  /** Compresses at the first call; null: the file is compressed already. */
  gzipped: (() => Promise<Buffer>) | null;
  cacheControl: string;
}

/**
 * Serves the console. Every path without a file extension is a page of it, which `index.html` shows.
 * @param folder of the built console; null if there is none.
 * @param signalingUrl where its page for calls connects to; null: to this origin.
 */
export function consolePages(folder: string | null, signalingUrl: string | null) {
  const files = folder === null ? new Map<string, File>() : readFiles(folder);
  const headers = { ...pageSecurityHeaders(), 'content-security-policy': policy(signalingUrl) };
  return async (request: Request, response: Response, _next: NextFunction): Promise<void> => {
    const context = contextOf(response);
    context.route = '/console';
    if (!isRead(request)) throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    if (files.size === 0) {
      throw new PublicError('ROUTE_NOT_FOUND', {
        message: 'The console is not built. Build it with "pnpm turbo run build --filter=@callplane/console".',
      });
    }
    const path = request.path.slice(1);
    const file = files.get(extname(path) === '' ? 'index.html' : path);
    if (file === undefined) throw new PublicError('ROUTE_NOT_FOUND');
    await send(request, response, file, { ...context.headers, ...headers });
  };
}

async function send(
  request: Request,
  response: Response,
  { type, body, gzipped, cacheControl }: File,
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

/** The console loads nothing from other hosts, and runs no script and no style inside its page. */
function policy(signalingUrl: string | null): string {
  const url = signalingUrl === null ? null : parseUrl(signalingUrl);
  const signaling = url === null ? '' : ` ${url.protocol}//${url.host}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "media-src 'self' blob:",
    `connect-src 'self'${signaling}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function readFiles(folder: string): Map<string, File> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && TYPES[extname(entry.name)] !== undefined)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  if (names.length > FILES_MAX) throw new Error(`the console has more than ${FILES_MAX} files: ${folder}`);
  return new Map(names.map((name) => [name.split(sep).join('/'), readFile(folder, name)]));
}

function readFile(folder: string, name: string): File {
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
  if (name === 'index.html') return 'no-store';
  return name.startsWith('assets') ? 'public, max-age=31536000, immutable' : 'no-cache';
}

/** The folder of the built console above this module: that of the repository, or `console` of the image. */
export function findConsole(): string | null {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    for (const candidate of [join(folder, 'apps', 'console', 'dist'), join(folder, 'console-pages')]) {
      if (existsSync(join(candidate, 'index.html'))) return candidate;
    }
    if (folder === dirname(folder)) return null;
  }
}
