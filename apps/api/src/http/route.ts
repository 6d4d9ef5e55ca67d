import type { ServerResponse } from 'node:http';
import type { Caller, ErrorCode, ErrorDetail, Scope } from '@callplane/core';
import type { Static, TObject, TSchema } from 'typebox';
import type { List, PageCursor, PagePosition } from './cursor.js';

type Method = 'get' | 'post' | 'patch' | 'delete';

export interface Reply {
  status: number;
  /** Sent as JSON. Absent for status 204. */
  body?: object;
  headers?: Record<string, string>;
  /** Takes over the answer instead of a body: it writes the head, and ends the response. */
  stream?: (response: ServerResponse, headers: Readonly<Record<string, string>>) => void;
}

/** How long the caller wants the answer to wait for completion (RFC 7240). `waitMs` is null without a preference. */
export interface Preference {
  waitMs: number | null;
  applied: string | null;
}

/** A request as a handler receives it: parsed, authenticated, authorised and validated. */
export interface Call<Params, Query, Body, Position = unknown> {
  caller: Caller;
  params: Params;
  query: Query;
  body: Body;
  /** The body before trimming and defaults. Requests with the same `Idempotency-Key` are compared by it. */
  bodyAsSent: unknown;
  /** On list routes: the position where the page begins. */
  cursor: PageCursor<Position>;
  preference: Preference;
  /** Arrival time of the request, from `performance.now()`. */
  startedAtMs: number;
  /** The validated `Idempotency-Key`; null if it is absent or the route does not accept one. */
  idempotencyKey: string | null;
  isSecure: () => boolean;
  /** Scheme and host that the caller has used, such as `https://calls.example.com`. */
  origin: () => string;
  /** The `Last-Event-ID` header of a client that continues a stream; null without it. */
  lastEventId: string | null;
  log: (fields: Record<string, unknown>) => void;
  /**
   * Checks the API key again, for answers that come seconds after the request.
   * @throws PublicError UNAUTHENTICATED if it was revoked or has expired since.
   */
  recheckKey: () => Promise<void>;
  /** Whether the API key is still valid. For answers that take minutes; waits for other look-ups. */
  isKeyValid: () => Promise<boolean>;
  /** Calls the listener when the caller has closed the connection, or the answer is sent. */
  onClosed: (listener: () => void) => void;
  /** Reports time that the request spent waiting as its caller wished. The duration metric leaves it out. */
  waited: (ms: number) => void;
}

export interface UnvalidatedParts {
  caller: Caller;
  query: Record<string, unknown>;
  body: Record<string, unknown>;
}

export interface RouteShape {
  method: Method;
  /** Path pattern with OpenAPI braces: `/v1/rooms/{roomId}`. */
  path: string;
  operationId: string;
  summary: string;
  description?: string;
  /** null means that any valid key may call the route. */
  scope: Scope | null;
  idempotent?: boolean;
  /** Whether the route waits for an operation, as `Prefer` requests. */
  prefers?: boolean;
  /** false: no rate limit. Only `GET /v1/` has none, because it answers nothing but 200 and 401. Default: true. */
  rateLimited?: boolean;
  /** Whether the code of a login link is accepted in place of an API key. Only the sign-in does. */
  acceptsLoginCode?: boolean;
  /** Whether a successful answer sets or deletes the cookie of the console. */
  setsCookie?: boolean;
  /** Whether a successful answer is a stream of server-sent events. */
  streams?: boolean;
  /** Whether the route ignores any request body and query. Only `GET /v1/` does, for the same reason. */
  ignoresBody?: boolean;
  list?: List;
  /** Whether a list may wait, as its query says, so that only its reads take turns with other lists. */
  waits?: boolean;
  params?: TObject;
  query?: TObject;
  /** Without this schema, the router rejects every body except an empty object. */
  body?: TSchema;
  /** Whether a request without a body counts as one with an empty object. */
  bodyOptional?: boolean;
  /** Checks that a schema cannot express. The router reports their failures together with the schemas' failures. */
  validate?: (parts: UnvalidatedParts) => ErrorDetail[];
  /** Successful answers by status. A null schema means an empty answer. */
  responses: Record<number, { description: string; schema: TSchema | null }>;
  /** Error codes of this route, in addition to the common ones. */
  errors?: readonly ErrorCode[];
}

/** A route without the tag of its noun. */
export interface UntaggedRoute extends RouteShape {
  handle(call: Call<unknown, unknown, unknown, Record<string, unknown>>): Promise<Reply>;
}

/** A route as the router and the OpenAPI document use it. */
export interface Route extends UntaggedRoute {
  /** Groups the operations of the document. */
  tag: string;
}

export function tagged(tag: string, routes: readonly UntaggedRoute[]): Route[] {
  return routes.map((route) => ({ ...route, tag }));
}

export type StaticOr<T, Fallback> = T extends TSchema ? Static<T> : Fallback;

/** Declares a route. Its schemas determine the handler's types, the validation and the OpenAPI document. */
export function defineRoute<
  Params extends TObject | undefined = undefined,
  Query extends TObject | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  L extends List | undefined = undefined,
>(
  route: Omit<RouteShape, 'params' | 'query' | 'body' | 'list'> & {
    params?: Params;
    query?: Query;
    body?: Body;
    list?: L;
    handle(
      call: Call<
        StaticOr<Params, undefined>,
        StaticOr<Query, undefined>,
        StaticOr<Body, undefined>,
        L extends List ? PagePosition<L> : never
      >,
    ): Promise<Reply>;
  },
): UntaggedRoute {
  return route as unknown as UntaggedRoute;
}
