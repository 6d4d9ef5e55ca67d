import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PublicError } from '@callplane/core';
import { Router, type Request, type Response } from 'express';
import { contextOf } from '../http/request-context.js';
import { send } from '../http/respond.js';
import { pageSecurityHeaders } from '../http/security-headers.js';
import { readGuides, type Guide } from './guides.js';

const page = (title: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>${title}</title><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
</head>
<body><div id="reference"></div><script src="/docs/standalone.js"></script><script src="/docs/start.js"></script></body>
</html>`;
/** Without fonts, telemetry and assistants, which would need other hosts. */
const SETTINGS = {
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
/** A guide is a reference without operations: no search, no versions, and one wide column. */
const GUIDE_SETTINGS = {
  hideSearch: true,
  hideModels: true,
  hideTestRequestButton: true,
  documentDownloadType: 'none',
  customCss: `${SETTINGS.customCss}
    .introduction-section .badge, .section-columns > .section-column + .section-column { display: none }
    .introduction-section .section-column, .introduction-section .section-header-wrapper { display: block; max-width: 50rem }`,
};
const START = `const [guide] = /^\\/docs\\/guides\\/[a-z-]+/.exec(location.pathname) ?? [];
const settings = guide ? { ...${JSON.stringify(GUIDE_SETTINGS)}, url: guide + '.json' } : { url: '/openapi.json' };
Scalar.createApiReference('#reference', { ...${JSON.stringify(SETTINGS)}, ...settings });`;
/** Scalar sets inline styles and draws icons from data URLs. It loads nothing from other hosts. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Serves the OpenAPI document and a page that renders it without internet access. */
export function docsRouter(document: object): Router {
  const router = Router({ caseSensitive: true });
  const json = Buffer.from(JSON.stringify(document));
  // The package exports its style sheet beside the folder of the standalone bundle, but neither that folder nor itself.
  const assets = join(dirname(createRequire(import.meta.url).resolve('@scalar/api-reference/style.css')), 'browser');
  const pageHeaders = pageSecurityHeaders();
  const get = (path: string, answer: (response: Response) => void): void => {
    const layer = router.route(path);
    layer.get((_request: Request, response: Response) => {
      contextOf(response).route = path;
      answer(response);
    });
    layer.all(() => {
      throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    });
  };
  get('/openapi.json', (response) => send(response, 200, json));
  const getPage = (path: string, title: string): void =>
    get(path, (response) => {
      response.set({ ...pageHeaders, ...contextOf(response).headers, 'content-security-policy': PAGE_POLICY });
      response.type('html').send(page(title));
    });
  getPage('/docs', 'Callplane API');
  const guides = readGuides();
  for (const guide of guides) {
    const text = Buffer.from(JSON.stringify(asDocument(guide, guides)));
    getPage(`/docs/guides/${guide.name}`, `${guide.title} – Callplane`);
    get(`/docs/guides/${guide.name}.json`, (response) => send(response, 200, text));
  }
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

/** A guide as an OpenAPI document without operations, which is what the page renders. */
function asDocument({ name, title, text }: Guide, guides: readonly Guide[]): object {
  const others = guides.map((one) =>
    one.name === name ? `**${one.label}**` : `[${one.label}](/docs/guides/${one.name})`,
  );
  const list = ['[Reference](/docs)', ...others].join(' · ');
  return { openapi: '3.1.0', info: { title, version: 'v1', description: `${list}\n\n${text}` }, paths: {} };
}
