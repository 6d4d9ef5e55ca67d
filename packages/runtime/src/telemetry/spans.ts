/**
 * The only part of tracing that the apps use. It imports nothing: without OpenTelemetry, `startSpan` returns null, and no
 * file of the SDK is loaded.
 */

type SpanKind = 'server' | 'client' | 'consumer' | 'internal';

/**
 * Names follow the semantic conventions of OpenTelemetry, or begin with `callplane.`. Never tokens, keys, bodies,
 * metadata, paths, or addresses of clients. Undefined values are left out.
 */
type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanOptions {
  kind: SpanKind;
  /** W3C `traceparent` of the cause; null begins a trace. */
  parent: string | null;
  attributes?: SpanAttributes;
}

interface SpanEnd {
  /** Replaces the name that the span began with. */
  name?: string;
  attributes?: SpanAttributes;
  /** A low-cardinality code of the failure, which becomes `error.type`; null or absent: no failure. */
  error?: string | null;
}

export interface Span {
  /** W3C `traceparent` with this span as the parent. */
  readonly traceparent: string;
  /** 16 hexadecimal digits, for logs. */
  readonly spanId: string;
  /** Call it once. */
  end(end?: SpanEnd): void;
}

export type StartSpan = (name: string, options: SpanOptions) => Span;

let start: StartSpan | null = null;

/** Sets who makes the spans of this process; null: nothing does. */
export function setSpanMaker(maker: StartSpan | null): void {
  start = maker;
}

/** Whether spans are made, for code that must not even collect attributes without OpenTelemetry. */
export function isTracing(): boolean {
  return start !== null;
}

export function startSpan(name: string, options: SpanOptions): Span | null {
  return start === null ? null : start(name, options);
}
