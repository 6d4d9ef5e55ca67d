import { createHash } from 'node:crypto';

const CHECK_LENGTH = 6;

/**
 * An opaque cursor: the position in base64url with a short check, so that a mangled one is told from the end of a
 * list. It names no tenant; the query that uses it does.
 * @param list the list that it belongs to: a cursor of another one is refused.
 */
export function encodeCursor(list: string, position: readonly string[]): string {
  const body = Buffer.from(JSON.stringify(position)).toString('base64url');
  return body + check(list, body);
}

/** Whether {@link encodeCursor} made this text for this list. */
export function isCursor(list: string, cursor: string): boolean {
  const body = cursor.slice(0, -CHECK_LENGTH);
  return cursor.length > CHECK_LENGTH && check(list, body) === cursor.slice(-CHECK_LENGTH);
}

/** The position in a cursor that {@link isCursor} accepted. */
export function decodeCursor(cursor: string): string[] {
  return JSON.parse(Buffer.from(cursor.slice(0, -CHECK_LENGTH), 'base64url').toString()) as string[];
}

function check(list: string, body: string): string {
  return createHash('sha256').update(`${list}:${body}`).digest('base64url').slice(0, CHECK_LENGTH);
}
