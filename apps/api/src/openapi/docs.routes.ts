import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PublicError } from '@callplane/core';
import { Router, type Request, type Response } from 'express';
import { contextOf } from '../http/request-context.js';
import { pageSecurityHeaders } from '../http/respond.js';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>Callplane API</title><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
</head>
<body><div id="reference"></div><script src="/docs/standalone.js"></script><script src="/docs/start.js"></script></body>
</html>`;
/** Without fonts, telemetry and assistants, which would need other hosts. */
const SETTINGS = {
  url: '/openapi.json',
  layout: 'modern',
  theme: 'default',
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  hideClientButton: true,
  hiddenClients: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultOpenFirstTag: false,
  // A link to a section focuses the section, which would draw a frame around a whole screen.
  customCss: 'section:focus, .section:focus { outline: none }',
};
const START = `Scalar.createApiReference('#reference', ${JSON.stringify(SETTINGS)});`;
/** Scalar sets inline styles and draws icons from data URLs. It loads nothing from other hosts. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/**
 * A file goes only to a caller that has got its answer before: a thousand pipelined requests would keep the process busy
 * with gigabytes, for seconds in which nobody else gets an answer. Programs that pipeline requests are rare.
 */
const PIPELINED = {
  message: 'Read the answer before, and then send the next request.',
  headers: { 'retry-after': '1', connection: 'close' },
};

/** Serves the generated OpenAPI document and a page that renders it without internet access. */
export function docsRouter(): Router {
  const router = Router({ caseSensitive: true });
  const document = findDocument();
  // The package exports its style sheet beside the folder of the standalone bundle, but neither that folder nor itself.
  const assets = join(dirname(createRequire(import.meta.url).resolve('@scalar/api-reference/style.css')), 'browser');
  const pageHeaders = pageSecurityHeaders();
  const get = (path: string, answer: (response: Response) => void): void => {
    const layer = router.route(path);
    layer.get((_request: Request, response: Response) => {
      contextOf(response).route = path;
      if (response.socket === null) throw new PublicError('RATE_LIMITED', PIPELINED);
      answer(response);
    });
    layer.all(() => {
      throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    });
  };
  get('/openapi.json', (response) => {
    response.set(contextOf(response).headers);
    response.sendFile(document);
  });
  get('/docs', (response) => {
    response.set({ ...pageHeaders, ...contextOf(response).headers, 'content-security-policy': PAGE_POLICY });
    response.type('html').send(PAGE);
  });
  get('/docs/start.js', (response) => {
    response.set(contextOf(response).headers);
    response.type('js').send(START);
  });
  get('/docs/standalone.js', (response) => {
    response.set(contextOf(response).headers);
    response.sendFile('standalone.js', { root: assets });
  });
  return router;
}

/** `npm run generate` writes the document. It lies in `docs` above this module: of the repository, or of the image. */
function findDocument(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const file = join(folder, 'docs', 'openapi.json');
    if (existsSync(file)) return file;
    if (folder === dirname(folder)) throw new Error('docs/openapi.json is missing');
  }
}
