import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually, repositoryRoot, stopAtEnd } from '@callplane/testing';

/** Serves the route of Next.js as Next.js does: a standard `Request` in, a standard `Response` out. */
const SERVE_ROUTE = `
  import { createServer } from 'node:http';
  import { POST } from ${JSON.stringify(join(repositoryRoot, 'packages/webhook-verifier/examples/nextjs/route.mjs'))};
  createServer(async (request, response) => {
    const { method, headers } = request;
    const answer = await POST(new Request('http://localhost/', { method, headers, body: request, duplex: 'half' }));
    response.writeHead(answer.status).end();
  }).listen(process.env.PORT, '127.0.0.1', () => console.log('listening on the port'));`;

/** Starts a receiver of docs/receivers.md as its reader would. It prints a line for each event that it processes. */
export async function startExample(name: string, port: number, secret: string) {
  const args = name.startsWith('nextjs/')
    ? ['--input-type=module', '--eval', SERVE_ROUTE]
    : [join(repositoryRoot, 'packages/webhook-verifier/examples', name)];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRETS: JSON.stringify({ 1: secret }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  stopAtEnd(stop);
  await eventually(() => lines.some((line) => line.startsWith('listening on')));
  return { stop, processed: () => lines.filter((line) => line.startsWith('processing')) };
}
