import { listEnvironments, listProjects, type TypedSql } from '@callplane/db';
import { UsageError } from './failure.js';
import { quoted } from './output.js';

/** Names shown in an error that asks for a choice. */
const NAMES_MAX = 5;

/** The given project, or the only one. */
export async function projectOf(db: TypedSql, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const projects = await listProjects(db);
  const [only] = projects;
  if (only === undefined) throw new UsageError('There is no project yet: "rtc projects create --name <name>".');
  if (projects.length > 1) throw new UsageError(`Give --project, one of: ${namesOf(projects)}.`);
  return only.id;
}

/** The given environment, or the only one of all projects. */
export async function environmentOf(db: TypedSql, given: string | undefined, how = '--env'): Promise<string> {
  if (given !== undefined) return given;
  const projects = await listProjects(db);
  const environments = (await Promise.all(projects.map(({ id }) => listEnvironments(db, id)))).flatMap(
    (rows) => rows ?? [],
  );
  const [only] = environments;
  if (only === undefined) {
    throw new UsageError('There is no environment yet: "rtc environments create --project <id> --name <name>".');
  }
  if (environments.length > 1) throw new UsageError(`Give ${how}, one of: ${namesOf(environments)}.`);
  return only.id;
}

function namesOf(rows: readonly { id: string; name: string }[]): string {
  const shown = rows.slice(0, NAMES_MAX).map(({ id, name }) => `${id} ${quoted(name)}`);
  return [...shown, ...(rows.length > NAMES_MAX ? [`${rows.length - NAMES_MAX} more`] : [])].join(', ');
}
