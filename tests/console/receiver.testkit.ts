import { createServer, type ServerResponse } from 'node:http';
import { listenUntilEnd } from '@callplane/testing';

/** Markup that would run if a page inserted it as HTML. */
export const HOSTILE = '<img src=x onerror="globalThis.isAttacked=1">"><script>globalThis.isAttacked=1</script>';

const ANSWERS: Record<string, (response: ServerResponse) => void> = {
  '/ok': (response) => void response.end('thanks'),
  '/unavailable': (response) => void response.writeHead(503, { 'retry-after': '120' }).end('maintenance'),
  '/hostile': (response) => void response.writeHead(404, { server: HOSTILE, 'content-type': 'text/html' }).end(HOSTILE),
};

export interface ConsoleReceiver {
  readonly ok: string;
  readonly unavailable: string;
  readonly hostile: string;
  /** Whether `unavailable` answers 200 from now on. */
  mended: boolean;
}

/** Starts a real receiver that answers, fails or attacks, by the path of the request. */
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
  const receiver = { ok: `${url}/ok`, unavailable: `${url}/unavailable`, hostile: `${url}/hostile`, mended: false };
  return receiver;
}
