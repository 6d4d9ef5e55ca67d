import type { ServerResponse } from 'node:http';
import { PublicError, SharedBound } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';
import type { MatchesRoute } from './request-kind.js';

/** Bytes of answers that the callers of one environment may leave unread. The largest answer has about 4 MiB. */
export const UNREAD_BYTES_PER_ENVIRONMENT_MAX = 32 * 1024 * 1024;
/** Bytes of unread answers from which on an environment gets no more than its share of them. */
export const UNREAD_BYTES_SHARED = 64 * 1024 * 1024;
/** Bytes of all unread answers. */
export const UNREAD_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Counts the answers of this process that wait in its memory, because their callers do not read them. Without a bound,
 * one caller that sends requests for lists and reads nothing ends the process within seconds, at a rate of requests
 * that its limit allows.
 */
export class UnreadAnswers {
  readonly #held = new Map<string, number>();
  readonly #bound = new SharedBound(UNREAD_BYTES_SHARED);

  /** @throws PublicError RATE_LIMITED if the environment has no room for another answer of this size. */
  requireRoom(environmentId: string, bytes: number): void {
    const held = this.#held.get(environmentId) ?? 0;
    if (
      held + bytes <= UNREAD_BYTES_PER_ENVIRONMENT_MAX &&
      this.#bound.total + bytes <= UNREAD_BYTES_MAX &&
      this.#bound.allows(held, bytes)
    )
      return;
    throw new PublicError('RATE_LIMITED', {
      message: 'Too many answers have not been read. Read them first, or see Retry-After.',
      headers: { 'retry-after': '1' },
    });
  }

  /** Counts an answer that has ended, unless the operating system has taken all of it. */
  add(environmentId: string, bytes: number, response: ServerResponse): void {
    if (response.writableLength === 0 || response.closed) return;
    this.#change(environmentId, bytes);
    response.once('close', () => this.#change(environmentId, -bytes));
  }

  #change(environmentId: string, bytes: number): void {
    const before = this.#held.get(environmentId) ?? 0;
    const after = before + bytes;
    this.#bound.change(before, after);
    if (after > 0) this.#held.set(environmentId, after);
    else this.#held.delete(environmentId);
  }
}

/** Refuses requests of environments without room for another answer, before any work: changes must not happen then. */
export function refuseUnread(unread: UnreadAnswers, isUnlimited: MatchesRoute) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { caller } = contextOf(response);
    if (caller !== null && !isUnlimited(request)) unread.requireRoom(caller.environmentId, 1);
    next();
  };
}
