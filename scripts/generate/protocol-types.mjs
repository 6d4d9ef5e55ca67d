import { compile } from 'json-schema-to-typescript';
import { format, resolveConfig } from 'prettier';

const HEAD = '// Written by scripts/generate.mjs from packages/protocol. Do not edit; run "npm run generate".\n\n';
const REFERENCE = '#/definitions/';
/** What occurs inside messages and deserves a name of its own. */
const SHAPES = [
  'TrackSource',
  'TrackKind',
  'Track',
  'RemoteParticipant',
  'TrackReference',
  'Layer',
  'Candidate',
  'PeerTarget',
  'IceServer',
];

/**
 * The protocol as TypeScript types, and its constants, for the SDK, which has no dependencies.
 * @param {any} protocol the built packages/protocol
 * @param {string} path where it will stand, for its format
 * @returns {Promise<string>}
 */
export async function protocolTypes(protocol, path) {
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
  const types = await compile(/** @type {any} */ (root), 'Protocol', { ...options, unreachableDefinitions: true });
  const constants = `
    export const SUBPROTOCOL = ${JSON.stringify(protocol.SUBPROTOCOL)};
    /** Every way in which the gateway ends a connection. */
    export const CLOSE_REASONS = ${JSON.stringify(protocol.CLOSE_REASONS)} as const;
    export type CloseReason = keyof typeof CLOSE_REASONS;
    /** Why the gateway refused a request. */
    export const ERROR_CODES = ${JSON.stringify(protocol.ERROR_CODES)} as const;
    export type ErrorCode = keyof typeof ERROR_CODES;`;
  const text = HEAD + tidy(types) + constants;
  return format(text, { ...(await resolveConfig(path)), parser: 'typescript' });
}

/**
 * @param {Record<string, unknown>} messages by type
 * @param {string} suffix
 * @returns {Record<string, unknown>} `{ JoinRequest: … }`
 */
function named(messages, suffix) {
  return Object.fromEntries(
    Object.entries(messages).map(([type, schema]) => [
      `${type.charAt(0).toUpperCase()}${type.slice(1)}${suffix}`,
      schema,
    ]),
  );
}

/** @param {string[]} names */
function anyOf(names) {
  return { anyOf: names.map((name) => ({ $ref: REFERENCE + name })) };
}

/**
 * The schema with references in place of the named shapes inside it.
 * @param {any} schema
 * @param {Map<string, string>} names
 * @param {boolean} isTop
 * @returns {any}
 */
function referring(schema, names, isTop) {
  if (Array.isArray(schema)) return schema.map((item) => referring(item, names, false));
  if (schema === null || typeof schema !== 'object') return schema;
  const name = isTop ? undefined : names.get(identity(schema));
  if (name !== undefined) return { $ref: REFERENCE + name };
  // The compiler's own words for these two are longer, and wrong for JSON that is no object.
  if (schema.patternProperties !== undefined) return { tsType: 'Record<string, unknown>' };
  if (Object.keys(schema).every((key) => key === 'description')) return { ...schema, tsType: 'unknown' };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, referring(value, names, false)]));
}

/** @param {unknown} schema */
function identity(schema) {
  return JSON.stringify(schema);
}

/**
 * Drops what the compiler adds for a root that has no content, and its remarks about definitions.
 * @param {string} types
 */
function tidy(types) {
  return types
    .replace(/export interface Protocol \{[^}]*\}\n/, '')
    .replaceAll(
      /\n?\s*\*?\s*This interface was referenced by `Protocol`'s JSON-Schema\s*\n\s*\* via the `definition` "[^"]*"\.\s*/g,
      '\n',
    )
    .replaceAll(/\/\*\*\s*\*\//g, '');
}
