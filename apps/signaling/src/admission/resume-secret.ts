import { createHash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/** Creates the secret with which a client may resume its session. Only the client gets it. */
export function newResumeSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** The hash of a secret. The database stores only this. */
export function hashOf(secret: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(secret).digest());
}

const SECRET = /^[A-Za-z0-9_-]{43}$/;
const SESSION_ID = /^sess_[0-7][0-9a-z]{25}$/;

/** Whether a session can have this id and secret. If not, the resumption is refused without a query. */
export function isPlausible({ sessionId, resumeSecret }: { sessionId: string; resumeSecret: string }): boolean {
  return SESSION_ID.test(sessionId) && SECRET.test(resumeSecret);
}
