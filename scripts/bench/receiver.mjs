/** A receiver of webhooks in a process of its own: answers after a wait, `/tarpit` never. Tells of each arrival. */
import { createServer } from 'node:http';

const waitMs = Number(process.argv[2] ?? 0);
const server = createServer((request, response) => {
  const atMs = performance.timeOrigin + performance.now();
  let body = '';
  request.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => (body += chunk));
  request.on('end', () => {
    process.send?.({
      atMs,
      path: request.url,
      eventId: body.slice(7, 37),
      deliveryId: request.headers['x-service-delivery-id'],
    });
    if (request.url === '/tarpit') return;
    if (waitMs === 0) response.end();
    else setTimeout(() => response.end(), waitMs);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
