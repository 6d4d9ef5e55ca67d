import { compile } from 'json-schema-to-typescript';

const HEAD = '// Written by packages/dev/src/generate from packages/protocol. Do not edit; run "npm run generate".\n\n';
const REFERENCE = '#/definitions/';
/** Schemas inside messages that get a type name. */
const SHAPES = [
  'TrackSource',
  'TrackKind',
  'Track',
  'RemoteParticipant',
  'TrackReference',
  'Layer',
  'Candidate',
  'PeerTarget',
  'QualityLevel',
  'IceServer',
  'Change',
];

/**
 * The protocol as TypeScript types, with its constants. The SDK needs a copy because it has no dependencies.
 * @param protocol the built packages/protocol
 */
export async function protocolTypes(protocol: any): Promise<string> {
  const shapes = Object.fromEntries(SHAPES.map((name) => [name, protocol[name]]));
  const client = named(protocol.CLIENT_MESSAGES, 'Request');
  const server = named(protocol.SERVER_MESSAGES, 'Message');
  const names = new Map(Object.entries(shapes).map(([name, schema]) => [identity(schema), name]));
  const definitions = Object.fromEntries(
    Object.entries({ ...shapes, ...client, ...server }).map(([name, schema]) => [name, referring(schema, names, true)]),
  );
  const root = {
    definitions: {
      ...definitions,
      ClientMessage: anyOf(Object.keys(client)),
      ServerMessage: anyOf(Object.keys(server)),
    },
  };
  const options = { additionalProperties: false, bannerComment: '', format: false, ignoreMinAndMaxItems: true };
  const types = await compile(root, 'Protocol', { ...options, unreachableDefinitions: true });
  const constants = `
    /** WebSocket sub-protocol. */
    export const SUBPROTOCOL = ${JSON.stringify(protocol.SUBPROTOCOL)};
    /** Every way in which the gateway ends a connection. */
    export const CLOSE_REASONS = ${JSON.stringify(protocol.CLOSE_REASONS)} as const;
    export type CloseReason = keyof typeof CLOSE_REASONS;
    /** Why the gateway refused a request. */
    export const ERROR_CODES = ${JSON.stringify(protocol.ERROR_CODES)} as const;
    export type ErrorCode = keyof typeof ERROR_CODES;
    /** The gateway refuses input beyond these. */
    export const PROTOCOL_LIMITS = ${JSON.stringify(protocol.PROTOCOL_LIMITS)} as const;`;
  return HEAD + tidy(types) + constants;
}

/**
 * @param messages the schemas by message type
 * @returns `{ JoinRequest: … }`
 */
function named(messages: Record<string, unknown>, suffix: string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(messages).map(([type, schema]) => [
      `${type.charAt(0).toUpperCase()}${type.slice(1)}${suffix}`,
      schema,
    ]),
  );
}

function anyOf(names: string[]) {
  return { anyOf: names.map((name) => ({ $ref: REFERENCE + name })) };
}

/** Replaces the named shapes inside the schema by references. */
function referring(schema: any, names: Map<string, string>, isTop: boolean): any {
  if (Array.isArray(schema)) return schema.map((item) => referring(item, names, false));
  if (schema === null || typeof schema !== 'object') return schema;
  const name = isTop ? undefined : names.get(identity(schema));
  if (name !== undefined) return { $ref: REFERENCE + name };
  // The compiler's own types for these two are longer, and wrong for JSON that is not an object.
  if (schema.patternProperties !== undefined) return { tsType: 'Record<string, unknown>' };
  if (Object.keys(schema).every((key) => key === 'description')) return { ...schema, tsType: 'unknown' };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, referring(value, names, false)]));
}

function identity(schema: unknown) {
  return JSON.stringify(schema);
}

/** Removes the compiler's interface for the empty root, and its remarks about definitions. */
function tidy(types: string) {
  return types
    .replace(/export interface Protocol \{[^}]*\}\n/, '')
    .replaceAll(
      /\n?\s*\*?\s*This interface was referenced by `Protocol`'s JSON-Schema\s*\n\s*\* via the `definition` "[^"]*"\.\s*/g,
      '\n',
    )
    .replaceAll(/\/\*\*\s*\*\//g, '');
}
