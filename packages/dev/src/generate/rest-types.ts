import openapiTS, { astToString } from 'openapi-typescript';

const headFrom = (source: string) =>
  `// Written by packages/dev/src/generate from ${source}. Do not edit; run "npm run generate".\n\n`;
const HEAD = headFrom('the OpenAPI document');

interface Operation {
  id: string;
  method: string;
  path: string;
  described: any;
}

/** The types of paths, operations and schemas, as openapi-typescript writes them; of the requests that a server gets. */
export async function openApiTypes({ webhooks: _, ...document }: any): Promise<string> {
  return HEAD + astToString(await openapiTS(document));
}

/**
 * The types of the bodies of deliveries. The package that verifies deliveries needs a copy because it has no
 * dependencies.
 */
export async function eventTypes(document: any): Promise<string> {
  const names = reachable(document.components.schemas, 'Event');
  const schemas = Object.fromEntries(names.map((name) => [name, document.components.schemas[name]]));
  const { openapi, info } = document;
  const pruned = { openapi, info, paths: {}, components: { schemas } };
  const types = astToString(await openapiTS(pruned));
  // The document has no paths here, so openapi-typescript leaves the other interfaces empty.
  const components = /^export interface components \{[^]*?^\}/m.exec(types)?.[0] ?? '';
  return headFrom('the schemas of the events') + components + '\n';
}

/** The functions of the server SDK, one for each operation. */
export function operationTypes(document: any): string {
  const schemas = Object.keys(document.components.schemas).filter((name) => !/(?:^Error|Event)$/.test(name));
  const text = `
    import type { ListOperation, Operation } from './operation.js';
    import type { components } from './openapi.generated.js';

    ${schemas.map((name) => `export type ${name} = components['schemas']['${name}'];`).join('\n')}

    /** Every operation of the API. */
    export interface Operations {
    ${operationsOf(document).map(signature).join('\n')}
    }`;
  return HEAD + text;
}

const GENERATED = /(?<=<!-- Written by "npm run generate". -->\n)[^]*?(?=<!-- end -->)/;

/** The README of the server SDK with its functions, in the groups of the OpenAPI document. */
export function withFunctions(readme: string, document: any): string {
  const groups = new Map<string, string[]>();
  for (const { id, described } of operationsOf(document)) {
    const [tag] = described.tags as [string];
    groups.set(tag, [...(groups.get(tag) ?? []), `\`${id}\``]);
  }
  const rows = [...groups].map(([tag, ids]) => `| ${tag} | ${ids.join(', ')} |`);
  return withGenerated(readme, ['| | functions |', '| --- | --- |', ...rows]);
}

/** A document whose generated part has these lines. */
export function withGenerated(document: string, lines: readonly string[]): string {
  return document.replace(GENERATED, () => `\n${lines.join('\n')}\n\n`);
}

/** The facts of each operation for the server SDK at run time. */
export function operationFacts(document: any): string {
  const facts = operationsOf(document).map((operation) => `${operation.id}: ${JSON.stringify(factsOf(operation))},`);
  const text = `
    import type { OperationFacts, OperationId } from './operation.js';

    export const OPERATIONS: Readonly<Record<OperationId, OperationFacts>> = {
    ${facts.join('\n')}
    };`;
  return HEAD + text;
}

/** All operations except streams, which the server SDK reads with code of its own. */
function operationsOf(document: any): Operation[] {
  return Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods)
      .filter(([, described]) => described['x-stream'] !== true)
      .map(([method, described]) => ({
        id: String(described.operationId),
        method: method.toUpperCase(),
        path,
        described,
      })),
  );
}

function signature(operation: Operation): string {
  const { id, method, path, described } = operation;
  const scope = described['x-scope'] === undefined ? '' : `, scope \`${described['x-scope']}\``;
  const lines = [
    ...[described.summary, described.description].filter((text) => text !== undefined),
    `\`${method} ${path}\`${scope}`,
  ];
  const comment = lines.map((line) => `* ${sentence(String(line))}`).join('\n*\n');
  const kind = cursorOf(operation) === undefined ? 'Operation' : 'ListOperation';
  return `/**\n${comment}\n*/\n${id}: ${kind}<'${id}'>;`;
}

/** Ends in a full stop, and cannot end the comment. */
function sentence(text: string): string {
  const safe = text.replaceAll('*/', '*\\/');
  return /[.!?]$/.test(safe) ? safe : `${safe}.`;
}

function factsOf(operation: Operation): Record<string, unknown> {
  const { method, path, described } = operation;
  const parameters: any[] = described.parameters ?? [];
  const named = (place: string) => parameters.filter((parameter) => parameter.in === place).map(({ name }) => name);
  const query = named('query');
  const headers = named('header');
  const cursor = cursorOf(operation);
  return {
    method,
    path,
    ...(query.length === 0 ? {} : { query }),
    ...(described.requestBody === undefined ? {} : { hasBody: true }),
    ...(headers.includes('Idempotency-Key') ? { hasIdempotencyKey: true } : {}),
    ...(headers.includes('Prefer') ? { hasPrefer: true } : {}),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

/** The query parameter that continues a list; undefined for other operations. */
function cursorOf({ described }: Operation): string | undefined {
  const names = (described.parameters ?? []).map(({ name }: { name: string }) => name);
  const reference = described.responses['200']?.content?.['application/json']?.schema?.$ref;
  if (typeof reference !== 'string' || !reference.endsWith('Page')) return undefined;
  return ['cursor', 'after'].find((name) => names.includes(name));
}

/** The names of a schema and of all schemas that it refers to, in the order of the document. */
function reachable(schemas: Record<string, unknown>, from: string): string[] {
  const found = new Set<string>();
  const visit = (name: string) => {
    if (found.has(name)) return;
    found.add(name);
    for (const [, next] of JSON.stringify(schemas[name]).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
      visit(next!);
    }
  };
  visit(from);
  return Object.keys(schemas).filter((name) => found.has(name));
}
