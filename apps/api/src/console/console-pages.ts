import { extname } from 'node:path';
import { parseUrl, PublicError } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf, isRead } from '../http/request-context.js';
import { folderAbove, pageFiles, pageSecurityHeaders } from '../http/respond.js';

/**
 * Serves the console. `index.html` shows the page of every path without a file extension.
 * @param folder of the built console; null if there is none.
 * @param signalingUrl where its page for calls connects to; null: to this origin.
 * @param filesOrigin where links to recordings lead; null: to this origin.
 */
export function consolePages(folder: string | null, signalingUrl: string | null, filesOrigin: string | null) {
  const headers = { ...pageSecurityHeaders(), 'content-security-policy': policy(signalingUrl, filesOrigin) };
  const files = folder === null ? null : pageFiles(folder, () => headers);
  return (request: Request, response: Response, next: NextFunction): void => {
    contextOf(response).route = '/console';
    if (!isRead(request)) throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    if (files === null) {
      throw new PublicError('ROUTE_NOT_FOUND', {
        message: 'The console is not built. Build it with "pnpm turbo run build --filter=@callplane/console".',
      });
    }
    if (extname(request.path) === '') request.url = '/index.html';
    files(request, response, next);
  };
}

/** The console loads nothing from other hosts, and runs no script and no style inside its page. */
function policy(signalingUrl: string | null, filesOrigin: string | null): string {
  const url = signalingUrl === null ? null : parseUrl(signalingUrl);
  const signaling = url === null ? '' : ` ${url.protocol}//${url.host}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `media-src 'self' blob:${filesOrigin === null ? '' : ` ${filesOrigin}`}`,
    `connect-src 'self'${signaling}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** The folder of the built console, in the repository or in the image. */
export const findConsole = (): string | null => folderAbove('apps/console/dist/index.html', 'console-pages/index.html');
