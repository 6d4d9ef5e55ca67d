import { createServer, type ServerResponse } from 'node:http';
import { listenUntilEnd } from '@callplane/testing';

/** Markup that would run if a page inserted it as HTML. */
const HOSTILE = '<img src=x onerror="globalThis.isAttacked=1">"><script>globalThis.isAttacked=1</script>';

const ANSWERS: Record<string, (response: ServerResponse) => void> = {
  '/ok': (response) => void response.end('thanks'),
  '/unavailable': (response) => void response.writeHead(503, { 'retry-after': '120' }).end('maintenance'),
  '/hostile': (response) => void response.writeHead(404, { server: HOSTILE, 'content-type': 'text/html' }).end(HOSTILE),
  // Keeps the connection open until the worker gives up.
  '/hang': () => undefined,
};

export interface ConsoleReceiver {
  /** URL of the path that answers 200. */
  readonly ok: string;
  /** Answers 503 with `Retry-After`. */
  readonly unavailable: string;
  /** Answers 404 with markup in its headers and body. */
  readonly hostile: string;
  /** Takes requests and never answers. */
  readonly hang: string;
  /** What markup the hostile answers hold. */
  readonly markup: string;
  /** Whether `unavailable` answers 200 from now on. */
  mended: boolean;
}

/** Starts a real receiver that answers, fails, hangs or attacks, by the path of the request. */
export async function startConsoleReceiver(): Promise<ConsoleReceiver> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      const path = new URL(request.url ?? '/', 'http://receiver').pathname;
      const answer = receiver.mended && path === '/unavailable' ? ANSWERS['/ok'] : ANSWERS[path];
      answer?.(response);
    });
  });
  const { origin: url } = await listenUntilEnd(server);
  const receiver: ConsoleReceiver = {
    ok: `${url}/ok`,
    unavailable: `${url}/unavailable`,
    hostile: `${url}/hostile`,
    hang: `${url}/hang`,
    markup: HOSTILE,
    mended: false,
  };
  return receiver;
}
