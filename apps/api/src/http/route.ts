import type { Caller, ErrorCode, ErrorDetail, Scope } from '@callplane/core';
import type { Response } from 'express';
import type { Static, TObject, TSchema } from 'typebox';
import type { List, PageCursor, PagePosition } from './cursor.js';

type Method = 'get' | 'post' | 'patch' | 'delete';

export interface Reply {
  status: number;
  /** Sent as JSON. Absent for status 204. */
  body?: object;
  headers?: Record<string, string>;
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
  /** The validated `Idempotency-Key`; null if it is absent or the route does not accept one. */
  idempotencyKey: string | null;
  /** For handlers that wait, read other headers, or write the answer: `contextOf` has the state of the request. */
  response: Response;
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
  /** Whether a successful answer sets or deletes the cookie of the console. */
  setsCookie?: boolean;
  list?: List;
  params?: TObject;
  query?: TObject;
  /**
   * Without this schema, every body is rejected except an empty object. With an optional one, a request without a body
   * counts as one with an empty object.
   */
  body?: TSchema;
  /** Checks that a schema cannot express. Their failures are reported together with the schemas' failures. */
  validate?: (parts: UnvalidatedParts) => ErrorDetail[];
  /** Successful answers by status. A null schema means an empty answer, and `content` one that is no JSON. */
  responses: Record<number, { description: string; schema: TSchema | null; content?: object }>;
  /** Error codes of this route, in addition to the common ones and to those of the ids in its path. */
  errors?: readonly ErrorCode[];
  /** Further fields of the operation in the OpenAPI document. */
  document?: object;
}

/** A route without the tag of its noun. */
export interface UntaggedRoute extends RouteShape {
  /** Null: the handler answers by itself. */
  handle(call: Call<unknown, unknown, unknown, Record<string, unknown>>): Promise<Reply | null>;
}

/** A route as the server and the OpenAPI document use it. */
export interface Route extends UntaggedRoute {
  /** Groups the operations of the document. */
  tag: string;
}

export function tagged(tag: string, routes: readonly UntaggedRoute[]): Route[] {
  return routes.map((route) => ({ ...route, tag }));
}

export type StaticOr<T, Fallback> = T extends TSchema ? Static<T> : Fallback;

/** A route with a handler of its own, outside of the rate limits and without request data, as the document shows it. */
export interface PlainRoute extends Pick<Route, 'path' | 'operationId' | 'summary' | 'tag'> {
  method: 'get';
  description: string;
  response: { description: string; schema: TSchema };
  /** The components of the headers that a successful answer has in addition to the id of the request. */
  headers: readonly 'JwksCacheControl'[];
  /** All error codes of the route. */
  errors: readonly ErrorCode[];
  /** Whether it needs no API key. */
  isPublic?: boolean;
}

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
    ): Promise<Reply | null>;
  },
): UntaggedRoute {
  return route as unknown as UntaggedRoute;
}
