import type { operations } from './openapi.generated.js';
import { CallplaneError } from './errors.js';

/** The name of an operation in the OpenAPI document. The stream is no operation: `stream` reads it. */
export type OperationId = Exclude<keyof operations, 'openStream'>;

/** Facts about an operation that its request and its retries need; `npm run generate` writes them. */
export interface OperationFacts {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With braces: `/v1/rooms/{roomId}`. */
  path: string;
  query?: readonly string[];
  hasBody?: true;
  /** The operation takes an `Idempotency-Key`. */
  hasIdempotencyKey?: true;
  /** The operation waits for a clean-up, as `Prefer` says. */
  hasPrefer?: true;
  /** The operation is a list, and this query parameter takes its `nextCursor`. */
  cursor?: 'cursor' | 'after';
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call. The call rejects with the reason of the signal. */
  signal?: AbortSignal;
  /** How long one attempt may take, in milliseconds; default: the client's value. */
  timeoutMs?: number;
  /** How often a failed attempt is repeated, 0 to 10; default: the client's value. */
  retriesMax?: number;
  /** The API keeps this id (`[A-Za-z0-9_.:-]`, at most 128 characters) and writes it to its log. */
  requestId?: string;
}

interface IdempotencyOption {
  /** Repetitions within 24 hours with this key and the same input get the first result. Default: a random key. */
  idempotencyKey?: string;
}

interface WaitOption {
  /** How long the API waits for the clean-up, in whole seconds, at most 10; 0: not at all. */
  waitSeconds?: number;
}

type HeadersOf<Id extends OperationId> = operations[Id]['parameters'] extends { header?: infer Headers }
  ? NonNullable<Headers>
  : never;
type Has<Headers, Name extends string> = [Headers] extends [never] ? false : Name extends keyof Headers ? true : false;

/** The options of one operation. */
export type OptionsOf<Id extends OperationId> = CallOptions &
  (Has<HeadersOf<Id>, 'Idempotency-Key'> extends true ? IdempotencyOption : unknown) &
  (Has<HeadersOf<Id>, 'Prefer'> extends true ? WaitOption : unknown);

type OrNothing<T> = [T] extends [never] ? unknown : T;
type PathOf<Id extends OperationId> = operations[Id]['parameters'] extends { path: infer Path } ? Path : unknown;
type QueryOf<Id extends OperationId> = operations[Id]['parameters'] extends { query?: infer Query }
  ? OrNothing<NonNullable<Query>>
  : unknown;
type BodyOf<Id extends OperationId> = operations[Id] extends {
  requestBody?: { content: { 'application/json': infer Body } };
}
  ? OrNothing<Body>
  : unknown;

/** One type instead of an intersection, for readable hints in editors. */
type Flat<T> = { [Key in keyof T]: T[Key] };

/** A field of the body that is named like one of the path gets the prefix `to`. */
type Prefixed<Body, Path> = {
  [Name in keyof Body as Name extends keyof Path & string ? `to${Capitalize<Name>}` : Name]: Body[Name];
};

/** The fields of path, query and body together. */
export type InputOf<Id extends OperationId> = Flat<PathOf<Id> & QueryOf<Id> & Prefixed<BodyOf<Id>, PathOf<Id>>>;

type ContentOf<Response> = Response extends { content: { 'application/json': infer Content } } ? Content : never;
type ContentWith<Responses, Status> = Status extends keyof Responses ? ContentOf<Responses[Status]> : never;

/** The result of a call: the body of the response, or undefined for 204. */
export type ResultOf<Id extends OperationId> =
  | ContentWith<operations[Id]['responses'], 200 | 201 | 202>
  | (204 extends keyof operations[Id]['responses'] ? undefined : never);

// An input without any required field may be omitted.
type ArgumentsOf<Id extends OperationId> =
  Partial<InputOf<Id>> extends InputOf<Id>
    ? [input?: InputOf<Id>, options?: OptionsOf<Id>]
    : [input: InputOf<Id>, options?: OptionsOf<Id>];

/** Calls one operation. */
export type Operation<Id extends OperationId> = (...args: ArgumentsOf<Id>) => Promise<ResultOf<Id>>;

/** Calls one operation that returns a list. Await the result for one page, or iterate over the items of all pages. */
export type ListOperation<Id extends OperationId> = (
  ...args: ArgumentsOf<Id>
) => ResultOf<Id> extends { data: (infer Item)[]; nextCursor: string | null } ? Page<ResultOf<Id>, Item> : never;

/** One page of a list, as the API returns it. */
export interface PageContent<Item> {
  data: Item[];
  nextCursor: string | null;
}

/** A list: resolves to its first page, and iterates over the items of this page and all further ones. */
export interface Page<Content, Item> extends Promise<Content>, AsyncIterable<Item> {}

/** @param load loads the page that begins at the cursor; undefined: the first page */
export function pageOf<Item>(
  operationId: string,
  load: (cursor: string | undefined) => Promise<PageContent<Item>>,
): Page<PageContent<Item>, Item> {
  const first = load(undefined);
  async function* items(): AsyncGenerator<Item, void, undefined> {
    let page = await first;
    for (;;) {
      yield* page.data;
      const cursor = page.nextCursor;
      if (cursor === null) return;
      page = await load(cursor);
      if (page.nextCursor === cursor) {
        const message = `${operationId}: the page after a cursor has the same cursor, so the list would not end.`;
        throw new CallplaneError(message, { code: 'INVALID_RESPONSE', operationId });
      }
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: items });
}
