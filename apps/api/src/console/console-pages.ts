import { existsSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { parseUrl, PublicError } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf, isRead } from '../http/request-context.js';
import { pageSecurityHeaders } from '../http/respond.js';
import { readFiles, sendFile, type StaticFile } from '../pages/static-files.js';

/**
 * Serves the console. Every path without a file extension is a page of it, which `index.html` shows.
 * @param folder of the built console; null if there is none.
 * @param signalingUrl where its page for calls connects to; null: to this origin.
 */
export function consolePages(folder: string | null, signalingUrl: string | null) {
  const files = folder === null ? new Map<string, StaticFile>() : readFiles(folder);
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
    await sendFile(request, response, file, { ...context.headers, ...headers });
  };
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

/** The folder of the built console above this module: that of the repository, or `console` of the image. */
export function findConsole(): string | null {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    for (const candidate of [join(folder, 'apps', 'console', 'dist'), join(folder, 'console-pages')]) {
      if (existsSync(join(candidate, 'index.html'))) return candidate;
    }
    if (folder === dirname(folder)) return null;
  }
}
