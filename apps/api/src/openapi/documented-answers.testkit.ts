import { createHash } from 'node:crypto';
import { workerValue } from '@callplane/testing';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { securityHeaders } from '../http/respond.js';

type Json = Record<string, any>;

export interface Answer {
  method: string;
  /** The requested path with its query. */
  path: string;
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** Headers of the transport, or of every answer. They are not specific to an operation, so the document omits them. */
const NOT_DOCUMENTED = new Set([
  ...Object.keys(securityHeaders()),
  ...['cache-control', 'connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
]);

/**
 * Checks answers against the OpenAPI document: the status is documented for the route, the body matches its schema, an
 * example of the answer has the code of an error, every required header is present, and every header is documented. The check throws an error that names the problem.
 */
export function documentedAnswers(document: Json): (answer: Answer) => void {
  const { ajv, validator } = validatorsOf(document);

  return ({ method, path, status, headers, text }) => {
    const say = (problem: string) => `${method} ${path} → ${status}: ${problem}\n${text.slice(0, 1000)}`;
    if (!/^[\w.:-]{1,128}$/.test(String(headers['x-request-id']))) throw new Error(say('no x-request-id'));
    const { template, operation } = findOperation(document, method, path);
    if (operation === undefined && status < 400) throw new Error(say('a success that is not documented'));
    let pointer =
      operation === undefined
        ? UNROUTED[status]
        : `/paths/${escaped(template)}/${method === 'HEAD' ? 'get' : method.toLowerCase()}/responses/${status}`;
    let response = pointer === undefined ? undefined : resolve(document, pointer);
    if (typeof response?.['$ref'] === 'string') {
      pointer = response['$ref'].slice(1);
      response = resolve(document, pointer);
    }
    if (response === undefined && operation !== undefined) throw new Error(say('this status is not documented'));
    if (response !== undefined) {
      const problem = headerProblem(document, response, headers);
      if (problem !== undefined) throw new Error(say(problem));
    }
    if (method === 'HEAD' || (response !== undefined && response['content'] === undefined)) {
      if (text !== '') throw new Error(say('documented without a body'));
      return;
    }
    if (!String(headers['content-type']).startsWith('application/json')) throw new Error(say('is not JSON'));
    const body = JSON.parse(text) as Json;
    const validate = validator(
      response === undefined ? '/components/schemas/Error' : `${pointer}/content/application~1json/schema`,
    );
    if (!validate(body)) throw new Error(say(ajv.errorsText(validate.errors)));
    const codes = response?.['content']?.['application/json']?.examples as Json | undefined;
    if (status >= 400 && codes !== undefined && !Object.hasOwn(codes, body['error'].code))
      throw new Error(say('this code is not documented'));
    if (status >= 400 && body['error'].requestId !== headers['x-request-id'])
      throw new Error(say('requestId is not x-request-id'));
  };
}

/**
 * The validators of a document. The test files of a worker share them, because compiling them takes half a
 * second of processor time. Nothing in them refers to an object of this file: each is a clone, which Node makes outside.
 */
function validatorsOf(document: Json): { ajv: Ajv2020; validator: (pointer: string) => ValidateFunction } {
  const key = createHash('sha256').update(JSON.stringify(document)).digest('hex');
  const ajv = workerValue(key, () => {
    // Another test checks the document's schemas.
    // To optimise the code of a check costs more than its few runs save.
    const options = { allErrors: true, validateSchema: false, meta: false, code: { optimize: false } };
    const made = new Ajv2020(structuredClone({ strict: false, ...options }));
    formats.default(made);
    return made.addSchema(structuredClone({ $id: 'openapi', ...document }));
  });
  const validator = (pointer: string) =>
    workerValue(key + pointer, () => ajv.compile(structuredClone({ $ref: `openapi#${pointer}` })));
  return { ajv, validator };
}

/** The documented responses for answers that belong to no operation. */
const UNROUTED: Record<number, string> = {
  401: '/components/responses/Unauthenticated',
  404: '/components/responses/RouteNotFound',
  405: '/components/responses/MethodNotAllowed',
};

function findOperation(document: Json, method: string, path: string): { template: string; operation?: Json } {
  // Express serves a path with and without a last slash, and takes `/v1//` for `/v1/`.
  const pathname = (path.split('?')[0] ?? '').replace(/^\/v1\/\/$/, '/v1').replace(/\/$/, '');
  const template = Object.keys(document['paths'] as Json).find((candidate) =>
    new RegExp(`^${candidate.replace(/\/$/, '').replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  if (template === undefined) return { template: '' };
  return { template, operation: document['paths'][template][method === 'HEAD' ? 'get' : method.toLowerCase()] };
}

/** Returns the problem with the headers of an answer; undefined if there is none. */
function headerProblem(document: Json, response: Json, sent: Answer['headers']): string | undefined {
  const documented = new Map<string, Json>(
    Object.entries(response['headers'] as Json).map(([name, header]) => [
      name,
      resolve(document, header['$ref'].slice(1))!,
    ]),
  );
  for (const [name, { required }] of documented) {
    if (required === true && sent[name] === undefined) return `no header ${name}`;
  }
  const unknown = Object.keys(sent).find((name) => !documented.has(name) && !NOT_DOCUMENTED.has(name));
  return unknown === undefined ? undefined : `the header ${unknown} is not documented`;
}

function resolve(document: Json, pointer: string): Json | undefined {
  const segments = pointer.split('/').slice(1);
  return segments.reduce<Json | undefined>(
    (value, segment) => value?.[decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~')],
    document,
  );
}

function escaped(template: string): string {
  return encodeURIComponent(template.replaceAll('/', '~1'));
}
