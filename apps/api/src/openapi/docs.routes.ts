import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PublicError } from '@callplane/core';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import { contextOf, isRead } from '../http/request-context.js';
import { folderAbove, pageFiles, pageSecurityHeaders } from '../http/respond.js';

/**
 * A file goes only to a caller that has got its answer before: a thousand pipelined requests would keep the process busy
 * with gigabytes, for seconds in which nobody else gets an answer. Programs that pipeline requests are rare.
 */
const PIPELINED = {
  message: 'Read the answer before, and then send the next request.',
  headers: { 'retry-after': '1', connection: 'close' },
};

/**
 * Serves the OpenAPI document, a page that renders it, and the site of the documents if `npm run docs` has built it.
 * Everything works without internet access.
 * @param folder of the documents
 */
export function docsRouter(folder = findDocs()): Router {
  // Strict, because the page of the reference names its files relative to its folder.
  const router = Router({ caseSensitive: true, strict: true });
  // The package exports its style sheet beside the folder of the standalone bundle, but neither that folder nor itself.
  const scalar = join(dirname(createRequire(import.meta.url).resolve('@scalar/api-reference/style.css')), 'browser');
  const reference = join(folder, 'reference');
  const get = (path: string, file: string, from: string, policy?: string): void => {
    const headers = policy === undefined ? {} : { ...pageSecurityHeaders(), 'content-security-policy': policy };
    router.all(path, oneAnswerAtATime(path), (_request: Request, response: Response) => {
      response.set({ ...contextOf(response).headers, ...headers });
      response.sendFile(file, { root: from });
    });
  };
  get('/openapi.json', 'openapi.json', folder);
  get('/docs/reference/', 'index.html', reference, policyOf([]));
  get('/docs/reference/start.js', 'start.js', reference);
  get('/docs/reference/standalone.js', 'standalone.js', scalar);
  get('/docs/reference/openapi.json', 'openapi.json', folder);
  router.use('/docs', oneAnswerAtATime('/docs'), site(join(folder, 'dist')));
  return router;
}

function oneAnswerAtATime(route: string): RequestHandler {
  return (request, response, next) => {
    contextOf(response).route = route;
    if (!isRead(request)) throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    if (response.socket === null) throw new PublicError('RATE_LIMITED', PIPELINED);
    next();
  };
}

/** The pages of the site. Without it, its beginning leads to the reference. */
function site(folder: string): RequestHandler {
  const index = join(folder, 'index.html');
  let headers: Record<string, string> | null = null;
  // Addresses of pages may leave out their extension.
  const files = pageFiles(folder, () => headers ?? {}, { extensions: ['html'] });
  return (request, response, next) => {
    // `npm start` builds the site while the API runs.
    headers ??= existsSync(index) ? headersOf(readFileSync(index, 'utf8')) : null;
    const { pathname } = new URL(request.originalUrl, 'http://localhost');
    const moved = { '/docs': '/docs/', '/docs/reference': '/docs/reference/' }[pathname];
    const to = headers === null && pathname === '/docs/' ? '/docs/reference/' : moved;
    if (to === undefined) files(request, response, next);
    else response.set(contextOf(response).headers).redirect(302, to);
  };
}

/** @param page has the same inline scripts as all pages. */
function headersOf(page: string): Record<string, string> {
  // Such as the script that chooses light or dark before the first paint.
  const scripts = [...page.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)].map(([, script = '']) => script);
  const hashes = scripts.map((script) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`);
  return { ...pageSecurityHeaders(), 'content-security-policy': policyOf(hashes) };
}

/** Scalar and Mermaid set inline styles and draw icons from data URLs. Nothing comes from other hosts. */
function policyOf(scripts: string[]): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...scripts].join(' '),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** `npm run generate` writes the document into `docs` of the repository, or of the image. */
function findDocs(): string {
  const folder = folderAbove('docs/openapi.json');
  if (folder === null) throw new Error('docs/openapi.json is missing');
  return folder;
}
