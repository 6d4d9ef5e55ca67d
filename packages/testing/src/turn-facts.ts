import { createHmac } from 'node:crypto';
import { connect } from 'node:net';

const ANSWER_WITHIN_MS = 5_000;

/** A credential as the API issues it. */
export function turnCredential(
  secret: string,
  subject: string,
  ttlSeconds = 600,
): { username: string; credential: string } {
  const username = `${Math.floor(Date.now() / 1000) + ttlSeconds}:${subject}`;
  return { username, credential: createHmac('sha1', secret).update(username).digest('base64') };
}

/** The number of relays per user of a coturn, as its administration interface reports it. */
export function relaysByUser(coturn: { adminUrl: string; adminPassword: string }): Promise<Map<string, number>> {
  const url = new URL(coturn.adminUrl);
  const socket = connect(Number(url.port), url.hostname);
  let output = '';
  return new Promise((resolve, reject) => {
    socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy(new Error('coturn does not answer')));
    socket.once('error', reject);
    // coturn treats all data that arrives at once as one line.
    let next = [coturn.adminPassword, 'pu'];
    socket.on('data', (chunk: Buffer) => {
      output += chunk.toString('latin1');
      if (/(?:password: \s*|> )$/.test(output)) {
        const [line, ...rest] = next;
        next = rest;
        if (line !== undefined) socket.write(`${line}\r\n`);
      }
      if (!/Total sessions: \d+/.test(output)) return;
      socket.destroy();
      const users = output.matchAll(/user: <(.*)>, (\d+) sessions/g);
      resolve(new Map([...users].map(([, user = '', count]) => [user, Number(count)])));
    });
  });
}
