import type { Caller, ErrorCode, ErrorDetail, Scope } from '@callplane/core';
import type { Static, TSchema } from 'typebox';
import type { Preference } from './prefer.js';

export type Method = 'get' | 'post' | 'patch' | 'delete';

/** What a handler answers with. */
export interface Reply {
  status: number;
  /** Sent as JSON; absent for 204. */
  body?: object;
  headers?: Record<string, string>;
}

/** What reaches a handler: parsed, authenticated, authorised and validated. */
export interface Call<Params, Query, Body> {
  caller: Caller;
  params: Params;
  query: Query;
  body: Body;
  preference: Preference;
  /** When the request arrived, by `performance.now()`. */
  startedAtMs: number;
  /** A valid `Idempotency-Key`, on routes that take one. */
  idempotencyKey: string | null;
  /** Fields for the request's log line. */
  log: (fields: Record<string, unknown>) => void;
}

/** The parts of a request before they are known to match their schemas. */
export interface UnjudgedParts {
  caller: Caller;
  query: Record<string, unknown>;
  body: Record<string, unknown>;
}

interface RouteShape {
  method: Method;
  /** Pattern under the host, with OpenAPI's braces: `/v1/rooms/{roomId}`. */
  path: string;
  operationId: string;
  summary: string;
  description?: string;
  tag: string;
  /** null: any valid key may call it. */
  scope: Scope | null;
  /** Whether it takes an `Idempotency-Key`. */
  idempotent?: boolean;
  /** Whether it waits for an operation as `Prefer` says. */
  prefers?: boolean;
  rateLimited?: boolean;
  params?: TSchema;
  query?: TSchema;
  body?: TSchema;
  /** Failures that no schema can say, told together with the others. */
  judge?: (parts: UnjudgedParts) => ErrorDetail[];
  /** Successful answers by status; null for an empty one. */
  responses: Record<number, { description: string; schema: TSchema | null }>;
  /** Errors of its own, beside those that every route has. */
  errors?: readonly ErrorCode[];
}

/** A route as the router and the OpenAPI document see it. */
export interface Route extends RouteShape {
  handle(call: Call<unknown, unknown, unknown>): Promise<Reply>;
}

type StaticOr<T, Fallback> = T extends TSchema ? Static<T> : Fallback;

/** Declares a route: the schemas make the handler's types, the validation and the OpenAPI document. */
export function defineRoute<
  Params extends TSchema | undefined = undefined,
  Query extends TSchema | undefined = undefined,
  Body extends TSchema | undefined = undefined,
>(
  route: Omit<RouteShape, 'params' | 'query' | 'body'> & {
    params?: Params;
    query?: Query;
    body?: Body;
    handle(
      call: Call<StaticOr<Params, undefined>, StaticOr<Query, undefined>, StaticOr<Body, undefined>>,
    ): Promise<Reply>;
  },
): Route {
  return route as unknown as Route;
}
