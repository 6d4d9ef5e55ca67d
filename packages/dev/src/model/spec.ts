// The only file that knows the inside of Quint. Quint's command line can sample runs and needs a download to enumerate
// all states. Its evaluator, which runs in Node, evaluates any definition in any state: that is enough for both.

import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An expression of Quint's intermediate language, as far as this file reads it. */
interface Expression {
  kind: string;
  opcode?: string;
  args?: Expression[];
  value?: unknown;
}

/** A value of Quint's evaluator. */
interface Value {
  toBool(): boolean;
  toSet(): Iterable<Value>;
  toOrderedMap(): { get(field: string): Value };
  toQuintEx(ids: { nextId(): bigint }): Expression;
}

interface Either<T> {
  isLeft(): boolean;
  value: T & { message?: string };
}
type Evaluate = (context: unknown) => Either<Value>;

interface Register {
  value: unknown;
}
interface Evaluator {
  ctx: unknown;
  builder: { varStorage: { vars: { values(): Iterable<Register> }; clearCaches(): void } };
  shift(): void;
  test(definition: unknown, samples: number, index: number, onTrace: () => void): { status: string };
}
interface Parsed {
  errors: { message: string }[];
  modules: unknown;
  table: Map<bigint, unknown>;
  resolver: { collector: { definitionsByModule: Map<string, Map<string, unknown[]>> } };
}
interface Quint {
  newIdGenerator(): { nextId(): bigint };
  fileSourceResolver(sources: Map<string, string>): { lookupPath(folder: string, file: string): unknown };
  parsePhase1fromText(ids: unknown, text: string, path: string): unknown;
  parsePhase2sourceResolution(ids: unknown, resolver: unknown, path: unknown, phase: unknown): unknown;
  parsePhase3importAndNameResolution(phase: unknown): unknown;
  parsePhase4toposort(phase: unknown): Parsed;
  analyzeModules(table: unknown, modules: unknown): [{ message?: string; location?: string }[][], unknown];
}

const require = createRequire(import.meta.url);
/** Sources and build are at the same depth. (`root` of bootstrap.ts is not for tests of other folders.) */
const SPECS = fileURLToPath(new URL('../../../../specs', import.meta.url));
const INSIDE = '@informalsystems/quint/dist/src';

/** A state of a specification. Two states are equal if their keys are. */
export interface State {
  readonly key: string;
  readonly value: unknown;
}

/** A transition, with the fields of its move. */
export interface Step {
  readonly move: Readonly<Record<string, string | number>>;
  readonly state: State;
}

/** A module of a specification whose definitions can be evaluated in any state. */
export interface Spec {
  readonly module: string;
  readonly initial: State;
  /** Every transition that the specification allows in this state: its definition `successors`. */
  successors(state: State): Step[];
  /** Evaluates a definition of type bool. */
  holds(definition: string, state: State): boolean;
  /** Runs the scenarios, which are the definitions whose names end in `Test`. */
  scenarios(): { name: string; isPassed: boolean }[];
}

/** A specification of the folder `specs`, parsed once. */
export interface Source {
  /** Errors of types and effects; empty if there are none. Checked when it is called. */
  typeErrors(): string[];
  open(module: string): Spec;
}

/**
 * Parses a file of the folder `specs`.
 * @param edit changes the text first, to seed a bug.
 * @throws Error if the text cannot be parsed.
 */
export function readSource(file: string, edit: (text: string) => string = (text) => text): Source {
  const quint = require('@informalsystems/quint') as Quint;
  const path = join(SPECS, file);
  const text = edit(readFileSync(path, 'utf8'));
  const ids = quint.newIdGenerator();
  const resolver = quint.fileSourceResolver(new Map([[path, text]]));
  const main = resolver.lookupPath(dirname(path), basename(path));
  const resolved = quint.parsePhase2sourceResolution(ids, resolver, main, quint.parsePhase1fromText(ids, text, path));
  const parsed = quint.parsePhase4toposort(quint.parsePhase3importAndNameResolution(resolved));
  if (parsed.errors.length > 0) throw new Error(`${file}: ${parsed.errors.map(({ message }) => message).join('; ')}`);
  return {
    typeErrors: () => quint.analyzeModules(parsed.table, parsed.modules)[0].map((error) => JSON.stringify(error)),
    open: (module) => openModule(parsed, ids, module),
  };
}

function openModule(parsed: Parsed, ids: { nextId(): bigint }, module: string): Spec {
  const { Evaluator } = require(`${INSIDE}/runtime/impl/evaluator.js`) as {
    Evaluator: new (table: unknown, recorder: unknown, rng: unknown) => Evaluator;
  };
  const { buildExpr } = require(`${INSIDE}/runtime/impl/builder.js`) as {
    buildExpr(builder: unknown, expression: unknown): Evaluate;
  };
  const { newRng } = require(`${INSIDE}/rng.js`) as { newRng(seed: bigint): unknown };
  const { newTraceRecorder } = require(`${INSIDE}/runtime/trace.js`) as {
    newTraceRecorder(verbosity: number, rng: unknown, traces: number): unknown;
  };
  const { right } = createRequire(require.resolve('@informalsystems/quint'))('@sweet-monads/either') as {
    right(value: unknown): unknown;
  };
  const rng = newRng(1n);
  const evaluator = new Evaluator(parsed.table, newTraceRecorder(0, rng, 1), rng);
  const { varStorage } = evaluator.builder;
  const definitions = parsed.resolver.collector.definitionsByModule.get(module);
  const built = new Map<string, Evaluate>();
  const evaluate = (name: string): Value => {
    let run = built.get(name);
    if (run === undefined) {
      const definition = definitions?.get(name)?.at(-1);
      if (definition === undefined) throw new Error(`${module} has no definition ${name}`);
      const id = ids.nextId();
      parsed.table.set(id, definition);
      run = buildExpr(evaluator.builder, { kind: 'name', name, id });
      built.set(name, run);
    }
    const result = run(evaluator.ctx);
    if (result.isLeft()) throw new Error(`${module}::${name}: ${result.value.message}`);
    return result.value;
  };
  const inState = (state: State): void => {
    register.value = right(state.value);
    varStorage.clearCaches();
  };
  evaluate('init');
  evaluator.shift();
  const [register] = [...varStorage.vars.values()] as [Register];
  const initial = stateOf((register.value as Either<Value>).value);
  return {
    module,
    initial,
    successors(state) {
      inState(state);
      return [...evaluate('successors').toSet()].map((step) => {
        const fields = step.toOrderedMap();
        return { move: moveOf(fields.get('move')), state: stateOf(fields.get('state')) };
      });
    },
    holds(definition, state) {
      inState(state);
      return evaluate(definition).toBool();
    },
    scenarios() {
      const names = [...(definitions?.keys() ?? [])].filter((name) => /^\w+Test$/.test(name));
      return names.map((name) => {
        const { status } = evaluator.test(definitions?.get(name)?.at(-1), 1, 0, () => undefined);
        return { name, isPassed: status === 'passed' };
      });
    },
  };
}

const NO_IDS = { nextId: () => 0n };

function stateOf(value: Value): State {
  let key: string | undefined;
  return {
    // Most steps of a trace are not taken, and their keys are not read.
    get key() {
      key ??= textOf(value.toQuintEx(NO_IDS));
      return key;
    },
    value,
  };
}

/** Sets and records of Quint's evaluator are in a normal form, so that equal values have equal texts. */
function textOf({ kind, opcode, args = [], value }: Expression): string {
  return kind === 'app' ? `${opcode}(${args.map(textOf).join(',')})` : String(value);
}

/** The fields of a record whose values are texts and numbers. */
function moveOf(value: Value): Record<string, string | number> {
  const { args = [] } = value.toQuintEx(NO_IDS);
  const fields: [string, string | number][] = [];
  for (let at = 0; at + 1 < args.length; at += 2) {
    const field = args[at + 1]?.value;
    fields.push([String(args[at]?.value), typeof field === 'bigint' ? Number(field) : String(field)]);
  }
  return Object.fromEntries(fields);
}
