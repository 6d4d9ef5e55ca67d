import { buildRequest, OPERATIONS, type OperationId } from '@callplane/server/requests';

/** Quotes a value for a POSIX shell: within single quotes only the quote itself is special. */
export function shellQuoted(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * @returns a command that sends the same request with the key in `CALLPLANE_API_KEY`, so that no key is on the screen
 */
export function curlOf(id: OperationId, input: object, origin: string): string {
  const { facts, target, headers, body } = buildRequest(id, OPERATIONS[id], {
    input,
    options: {},
    newKey: () => 'A-KEY-OF-YOUR-OWN',
  });
  const idempotency = headers['idempotency-key'];
  return [
    `curl -sS ${facts.method === 'GET' ? '' : `-X ${facts.method} `}${shellQuoted(origin + target)}`,
    `-H "Authorization: Bearer $CALLPLANE_API_KEY"`,
    ...(idempotency === undefined ? [] : [`-H ${shellQuoted(`Idempotency-Key: ${idempotency}`)}`]),
    // `--json` would need curl 7.82.
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${shellQuoted(body)}`]),
  ].join(' \\\n  ');
}
