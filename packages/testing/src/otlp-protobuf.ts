/** A field: its name, and the message or scalar that it holds. A star marks a repeated one. */
type Field = readonly [name: string, holds: string];

/** The parts of OTLP's messages that tests read, by the number of the field. */
const MESSAGES: Readonly<Record<string, Readonly<Record<number, Field>>>> = {
  '/v1/traces': { 1: ['resourceSpans', 'ResourceSpans*'] },
  '/v1/logs': { 1: ['resourceLogs', 'ResourceLogs*'] },
  '/v1/metrics': { 1: ['resourceMetrics', 'ResourceMetrics*'] },
  ResourceSpans: { 1: ['resource', 'Resource'], 2: ['scopeSpans', 'ScopeSpans*'] },
  ResourceLogs: { 1: ['resource', 'Resource'], 2: ['scopeLogs', 'ScopeLogs*'] },
  ResourceMetrics: { 1: ['resource', 'Resource'], 2: ['scopeMetrics', 'ScopeMetrics*'] },
  Resource: { 1: ['attributes', 'KeyValue*'] },
  KeyValue: { 1: ['key', 'string'], 2: ['value', 'AnyValue'] },
  AnyValue: {
    1: ['stringValue', 'string'],
    2: ['boolValue', 'bool'],
    3: ['intValue', 'int'],
    4: ['doubleValue', 'double'],
  },
  ScopeSpans: { 2: ['spans', 'Span*'] },
  Span: {
    ...{ 1: ['traceId', 'hex'], 2: ['spanId', 'hex'], 4: ['parentSpanId', 'hex'], 5: ['name', 'string'] },
    ...{ 6: ['kind', 'int'], 9: ['attributes', 'KeyValue*'], 15: ['status', 'Status'] },
  },
  Status: { 3: ['code', 'int'] },
  ScopeLogs: { 2: ['logRecords', 'LogRecord*'] },
  LogRecord: {
    ...{ 3: ['severityText', 'string'], 5: ['body', 'AnyValue'], 6: ['attributes', 'KeyValue*'] },
    ...{ 9: ['traceId', 'hex'], 10: ['spanId', 'hex'] },
  },
  ScopeMetrics: { 2: ['metrics', 'Metric*'] },
  Metric: {
    ...{ 1: ['name', 'string'], 3: ['unit', 'string'], 5: ['gauge', 'Data'], 7: ['sum', 'Data'] },
    9: ['histogram', 'HistogramData'],
  },
  Data: { 1: ['dataPoints', 'Point*'] },
  Point: { 4: ['asDouble', 'double'], 7: ['attributes', 'KeyValue*'] },
  HistogramData: { 1: ['dataPoints', 'HistogramPoint*'] },
  HistogramPoint: {
    ...{ 5: ['sum', 'double'], 6: ['bucketCounts', 'fixed64[]'], 7: ['explicitBounds', 'double[]'] },
    9: ['attributes', 'KeyValue*'],
  },
};

/** Reads a message of protobuf as the JSON of OTLP would have it. Skips fields that no test reads. */
export function readMessage(type: string, bytes: Buffer): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (let at = 0; at < bytes.length;) {
    const key = readVarint(bytes, at);
    const [number, wire] = [key.value >> 3, key.value & 7];
    const length = wire === 2 ? readVarint(bytes, key.end) : null;
    const begin = length?.end ?? key.end;
    const end = wire === 0 ? readVarint(bytes, begin).end : begin + (length?.value ?? (wire === 1 ? 8 : 4));
    const [name, holds] = MESSAGES[type]?.[number] ?? [];
    if (name !== undefined && holds !== undefined) {
      const value = readValue(holds.replace('*', ''), bytes.subarray(begin, end));
      if (holds.endsWith('*')) ((message[name] ??= []) as unknown[]).push(value);
      else message[name] = value;
    }
    at = end;
  }
  return message;
}

function readValue(type: string, bytes: Buffer): unknown {
  switch (type) {
    case 'string':
      return bytes.toString();
    case 'hex':
      return bytes.toString('hex');
    case 'bool':
      return bytes[0] === 1;
    case 'int':
      return readVarint(bytes, 0).value;
    case 'double':
      return bytes.readDoubleLE();
    case 'double[]':
      return Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readDoubleLE(at * 8));
    case 'fixed64[]':
      return Array.from({ length: bytes.length / 8 }, (_, at) => Number(bytes.readBigUInt64LE(at * 8)));
    default:
      return readMessage(type, bytes);
  }
}

function readVarint(bytes: Buffer, from: number): { value: number; end: number } {
  for (let at = from, value = 0, factor = 1; ; at += 1, factor *= 128) {
    const byte = bytes[at] ?? 0;
    value += (byte & 127) * factor;
    if (byte < 128) return { value, end: at + 1 };
  }
}
