import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { PublicError } from '@callplane/core';
import { Router, type Request, type Response } from 'express';
import { contextOf } from '../http/request-context.js';
import { send } from '../http/respond.js';

/** Hides the links column. No answer has links, and the empty column makes the page wider than a phone. */
const NARROW = '<style>.swagger-ui .response-col_links { display: none }</style>';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>Callplane API</title><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/docs/swagger-ui.css">${NARROW}<link rel="icon" href="/docs/favicon-32x32.png">
</head>
<body><div id="ui"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body>
</html>`;
const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#ui', deepLinking: true, validatorUrl: null, tryItOutEnabled: false });`;
/** Swagger UI sets inline styles and draws icons from data URLs. It loads nothing from other hosts. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
const FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

/** Serves the OpenAPI document and a page that renders it without internet access. */
export function docsRouter(document: object): Router {
  const router = Router({ caseSensitive: true });
  const json = JSON.stringify(document);
  const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
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
  get('/docs', (response) => {
    response.set({ ...contextOf(response).headers, 'content-security-policy': PAGE_POLICY });
    response.type('html').send(PAGE);
  });
  get('/docs/start.js', (response) => {
    response.set(contextOf(response).headers);
    response.type('js').send(START);
  });
  for (const file of FILES) {
    get(`/docs/${file}`, (response) => {
      response.set(contextOf(response).headers);
      response.sendFile(file, { root: assets });
    });
  }
  return router;
}
