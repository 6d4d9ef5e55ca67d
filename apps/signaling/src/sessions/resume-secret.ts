import { createHash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/** Told to the client alone: who has it may resume the session. */
export function newResumeSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** What is stored of it. */
export function hashOf(secret: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(secret).digest());
}
