/** What the samples of an operation need. */
export interface SampledOperation {
  operationId: string;
  /** In capitals. */
  method: string;
  /** With braces: `/v1/rooms/{roomId}`. */
  path: string;
  /** Examples of the path parameters by name. */
  pathExamples: Readonly<Record<string, string>>;
  /** Examples of the required query parameters by name. */
  queryExamples: Readonly<Record<string, string>>;
  /** The example of the request body; undefined: no body. */
  body: unknown;
  needsKey: boolean;
  isIdempotent: boolean;
  /** The operation returns a list, so the SDK iterates over it. */
  isList: boolean;
  /** The operation answers with a stream. */
  isStream: boolean;
}

export interface CodeSample {
  lang: string;
  label: string;
  source: string;
}

/**
 * How to call an operation with curl, with the server SDK, and from Python. All three read the base address, which ends
 * in `/v1`, and the key from the environment variables `BASE` and `KEY`, as the README sets them.
 */
export function codeSamples(operation: SampledOperation): CodeSample[] {
  return [
    { lang: 'shell', label: 'curl', source: curlSample(operation) },
    { lang: 'typescript', label: 'Server SDK', source: sdkSample(operation) },
    { lang: 'python', label: 'Python', source: pythonSample(operation) },
  ];
}

function curlSample({ method, needsKey, isIdempotent, isStream, body, ...operation }: SampledOperation): string {
  const target = targetOf(operation);
  const address = target.startsWith('/v1') ? `$BASE${target.slice('/v1'.length)}` : `\${BASE%/v1}${target}`;
  const verb = method === (body === undefined ? 'GET' : 'POST') ? '' : ` -X ${method}`;
  const options = [
    ...(needsKey ? ['-H "Authorization: Bearer $KEY"'] : []),
    ...(isIdempotent ? ['-H "Idempotency-Key: $(date +%s%N)"'] : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoteForShell(JSON.stringify(body))}`]),
  ];
  return [`curl -s${isStream ? 'N' : ''}${verb} "${address}"`, ...options].join(' \\\n  ');
}

function sdkSample(operation: SampledOperation): string {
  const { operationId, pathExamples, queryExamples, body, isList, isStream } = operation;
  const input = { ...pathExamples, ...queryExamples, ...(body as object | undefined) };
  const argument = Object.keys(input).length === 0 ? '' : literal(input, TYPESCRIPT);
  const call = `callplane.${isStream ? 'stream' : operationId}(${argument})`;
  return [
    "import { createClient } from '@callplane/server';",
    '',
    'const callplane = createClient({ baseUrl: process.env.BASE!, apiKey: process.env.KEY! });',
    isList || isStream ? `for await (const item of ${call}) console.log(item);` : `console.log(await ${call});`,
  ].join('\n');
}

function pythonSample({ method, needsKey, isIdempotent, isStream, body, ...operation }: SampledOperation): string {
  const target = targetOf(operation);
  const address = target.startsWith('/v1')
    ? `os.environ["BASE"] + "${target.slice('/v1'.length)}"`
    : `os.environ["BASE"].removesuffix("/v1") + "${target}"`;
  const sent = {
    ...(needsKey ? { Authorization: 'Bearer ' } : {}),
    ...(isIdempotent ? { 'Idempotency-Key': 'new' } : {}),
  };
  const headers = literal(sent, PYTHON)
    .replace('"Bearer "', '"Bearer " + os.environ["KEY"]')
    .replace('"new"', 'str(uuid.uuid4())');
  return [
    isIdempotent ? 'import os, requests, uuid' : 'import os, requests',
    '',
    `response = requests.${method.toLowerCase()}(`,
    `    ${address},`,
    ...(Object.keys(sent).length === 0 ? [] : [`    headers=${headers},`]),
    ...(body === undefined ? [] : [`    json=${literal(body, PYTHON)},`]),
    ...(isStream ? ['    stream=True,'] : []),
    ')',
    'response.raise_for_status()',
    ...(isStream ? ['for line in response.iter_lines():', '    print(line)'] : ['print(response.text)']),
  ].join('\n');
}

function targetOf(operation: Pick<SampledOperation, 'path' | 'pathExamples' | 'queryExamples'>): string {
  const { path, pathExamples, queryExamples } = operation;
  const filled = Object.entries(pathExamples).reduce(
    (target, [name, value]) => target.replace(`{${name}}`, value),
    path,
  );
  const query = new URLSearchParams(queryExamples).toString();
  return query === '' ? filled : `${filled}?${query}`;
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

interface Notation {
  key(name: string): string;
  word(value: boolean | null): string;
  text(value: string): string;
}

const TYPESCRIPT: Notation = {
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)),
  word: String,
  text: (value) =>
    `'${JSON.stringify(value)
      .slice(1, -1)
      .replaceAll(String.raw`\"`, '"')
      .replaceAll("'", String.raw`\'`)}'`,
};

const PYTHON: Notation = {
  key: (name) => JSON.stringify(name),
  word: (value) => (value === null ? 'None' : value ? 'True' : 'False'),
  // Escapes of JSON mean the same in Python.
  text: (value) => JSON.stringify(value),
};

/** Writes a JSON value as an expression of a programming language. */
function literal(value: unknown, notation: Notation): string {
  if (typeof value === 'string') return notation.text(value);
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean' || value === null) return notation.word(value);
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, notation)).join(', ')}]`;
  const fields = Object.entries(value as object).map(
    ([name, item]) => `${notation.key(name)}: ${literal(item, notation)}`,
  );
  if (fields.length === 0) return '{}';
  return notation === TYPESCRIPT ? `{ ${fields.join(', ')} }` : `{${fields.join(', ')}}`;
}
