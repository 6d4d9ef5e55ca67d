/**
 * A webhook receiver in its own process. It answers after a fixed wait; `/wait/<ms>` sets another wait, `/tarpit` never
 * answers, and `/once503` fails the first request of each delivery. It reports each arrival to its parent.
 */
import { createServer } from 'node:http';

const waitMs = Number(process.argv[2] ?? 0);
const failed = new Set();
const server = createServer((request, response) => {
  const atMs = performance.timeOrigin + performance.now();
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    process.send?.({
      atMs,
      path: request.url,
      eventId: body.slice(7, 37),
      deliveryId: request.headers['x-service-delivery-id'],
    });
    if (request.url === '/tarpit') return;
    if (request.url === '/once503' && !failed.has(request.headers['x-service-delivery-id'])) {
      failed.add(request.headers['x-service-delivery-id']);
      response.statusCode = 503;
    }
    const ms = Number(/^\/wait\/(\d+)$/.exec(request.url ?? '')?.[1] ?? waitMs);
    if (ms === 0) response.end();
    else setTimeout(() => response.end(), ms);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
