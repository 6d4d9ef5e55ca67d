import { readFileSync } from 'node:fs';
import { databaseUrlProblem } from '@callplane/core';
import { Ajv, type ErrorObject } from 'ajv';
import formats from 'ajv-formats';
import { Type, type Static, type TObject } from 'typebox';

/** Lists all problems of an environment at once. Never contains the value of a secret. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigurationError';
    this.problems = problems;
  }
}

/** Marks a setting whose value is never printed. A file may provide it as well (`NAME_FILE=/run/secrets/name`). */
export const SECRET = { secret: true } as const;

const ajv = new Ajv({
  allErrors: true,
  useDefaults: true,
  verbose: true,
  strict: true,
  strictTypes: false,
  // Only settings of this repository get here. Checking them would compile the schema of schemas, in 0.05 s of each start
  // (measured).
  validateSchema: false,
  meta: false,
});
formats.default(ajv);
ajv.addVocabulary(['secret', 'expected']);
ajv.addFormat('database-url', (text) => databaseUrlProblem(text) === null);

/**
 * Reads the settings of a schema from the environment. Numbers are decimal, booleans are `true` or `false`, and commas
 * separate the items of lists. An empty variable counts as unset.
 * @throws ConfigurationError that names every missing or wrong setting.
 */
export function parseEnvironment<T extends TObject>(schema: T, environment: NodeJS.ProcessEnv): Static<T> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const settings = schema.properties as Record<string, Setting>;
  for (const [name, setting] of Object.entries(settings)) {
    const text = readSetting(name, setting, environment, problems);
    if (text === undefined) continue;
    const value = decode(text, setting);
    if (value === undefined) problems.push(`${name} ${expectation(setting)}${shown(text, setting)}`);
    else values[name] = value;
  }
  const misread = new Set(problems.map((problem) => problem.split(' ')[0]));
  const validate = ajv.compile<Static<T>>(schema);
  if (!validate(values)) {
    for (const error of validate.errors ?? []) {
      const missing = error.keyword === 'required' ? String(error.params['missingProperty']) : undefined;
      const name = missing ?? error.instancePath.split('/')[1] ?? '';
      if (misread.has(name)) continue;
      misread.add(name);
      const setting = settings[name] ?? {};
      problems.push(
        missing === undefined
          ? `${name} ${expectation(setting)}${reasonOf(error)}${shown(environment[name] ?? '', setting)}`
          : `${name} is required: ${setting.description ?? ''}`,
      );
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return values as Static<T>;
}

/** For `main.ts`: returns the result of `make`, or writes the problems that it throws to stderr and exits with code 1. */
export function orExitWithProblems<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

/**
 * For `main.ts`: returns the result of `make`, or writes its error to stderr and exits with code 1.
 * @param make builds a value from the setting. It throws if the setting is wrong in a way that a schema cannot express.
 *   If the error names another `setting`, that one is reported.
 */
export function orExit<T>(name: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const { message, setting = name } = error as Error & { setting?: string };
    process.stderr.write(`${new ConfigurationError([`${setting}: ${message}`]).message}\n`);
    process.exit(1);
  }
}

/** The fault of a URL, beyond its shape. Never contains a part of it that may be secret. */
function reasonOf({ keyword, data }: ErrorObject): string {
  const problem = keyword === 'format' ? databaseUrlProblem(String(data)) : null;
  return problem === null || problem === 'cannot be parsed' ? '' : `; this one ${problem}`;
}

function readSetting(
  name: string,
  setting: Setting,
  environment: NodeJS.ProcessEnv,
  problems: string[],
): string | undefined {
  const text = environment[name];
  if (text !== undefined && text !== '') return text;
  const file = setting.secret === true ? environment[`${name}_FILE`] : undefined;
  if (file === undefined || file === '') return undefined;
  try {
    // An empty file is an optional secret that is not used.
    return readFileSync(file, 'utf8').trimEnd() || undefined;
  } catch (error) {
    problems.push(
      `${name} cannot be read from ${name}_FILE (${(error as NodeJS.ErrnoException).code ?? 'unreadable'}: ${file})`,
    );
    return undefined;
  }
}

function decode(text: string, setting: Setting): unknown {
  switch (setting.type) {
    case 'integer':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'array':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    default:
      return text;
  }
}

/** The parts of a setting's schema that matter here. */
export interface Setting {
  type?: string;
  default?: string | number | boolean | readonly string[];
  description?: string;
  /** See {@link SECRET}. */
  secret?: boolean;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  enum?: string[];
  pattern?: string;
  expected?: string;
}

/** Describes the valid values of a setting, for error messages and docs/configuration.md. */
export function expectation(setting: Setting): string {
  const { minimum, maximum, enum: choices, pattern, expected } = setting;
  switch (setting.type) {
    case 'integer':
      return `must be a whole number${minimum === undefined ? '' : ` from ${minimum}`}${maximum === undefined ? '' : ` to ${maximum}`}`;
    case 'boolean':
      return 'must be true or false';
    case 'array':
      return `must be ${expected ?? 'a list with commas'}`;
    default:
      if (choices !== undefined) return `must be one of ${choices.join(', ')}`;
      return `must be ${expected ?? (pattern === undefined ? 'a text' : `like ${pattern}`)}`;
  }
}

export function choice<const T extends string>(values: readonly T[], options: { default?: T; description: string }) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
}

function shown(text: string, setting: Setting): string {
  return setting.secret === true ? '' : `, not ${JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)}`;
}
