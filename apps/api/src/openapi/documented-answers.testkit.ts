import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

type Json = Record<string, any>;

export interface Answer {
  method: string;
  /** As requested, query included. */
  path: string;
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/**
 * Checks answers against the OpenAPI document: the status is documented for the route, the body matches its schema,
 * and the headers that every answer carries are there. Throws with what is wrong.
 */
export function documentedAnswers(document: Json): (answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', ...document });
  const compiled = new Map<string, ValidateFunction>();
  const validator = (pointer: string): ValidateFunction => {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    compiled.set(pointer, validate);
    return validate;
  };

  return ({ method, path, status, headers, text }) => {
    const say = (problem: string) => `${method} ${path} → ${status}: ${problem}\n${text.slice(0, 1000)}`;
    if (!/^[\w.:-]{1,128}$/.test(String(headers['x-request-id']))) throw new Error(say('no x-request-id'));
    // Where a target holds a fragment, which it must not, Express takes backslashes for slashes.
    const plain = path.includes('#') ? path.replaceAll('\\', '/') : path;
    const pathname = (plain.split(/[?#]/)[0] ?? '').replace(/\/$/, '');
    const template = Object.keys(document['paths'] as Json).find((candidate) =>
      new RegExp(`^${candidate.replace(/\/$/, '').replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
    );
    const operation: Json | undefined =
      template === undefined
        ? undefined
        : document['paths'][template][method === 'HEAD' ? 'get' : method.toLowerCase()];
    let pointer = '/components/schemas/Error';
    if (operation !== undefined) {
      const response: Json | undefined = operation['responses'][String(status)];
      if (response === undefined) throw new Error(say('this status is not documented'));
      if (response['content'] === undefined || method === 'HEAD') {
        if (text !== '') throw new Error(say('documented without a body'));
        return;
      }
      pointer = `/paths/${encodeURIComponent(template!.replaceAll('/', '~1'))}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`;
    } else if (status < 400) {
      throw new Error(say('a success that is not documented'));
    }
    if (method === 'HEAD') return;
    if (!String(headers['content-type']).startsWith('application/json')) throw new Error(say('is not JSON'));
    const body = JSON.parse(text) as Json;
    const validate = validator(pointer);
    if (!validate(body)) throw new Error(say(ajv.errorsText(validate.errors)));
    if (status >= 400 && body['error'].requestId !== headers['x-request-id'])
      throw new Error(say('requestId is not x-request-id'));
  };
}
