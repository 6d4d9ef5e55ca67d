import type { Db } from '../client/database.js';
import type { Environment, Project } from '../generated/client.js';

export type ProjectRow = Project;
/** A tenant: every resource belongs to one environment. */
export type EnvironmentRow = Environment;

export async function createProject(db: Db, project: ProjectRow): Promise<void> {
  await db.project.create({ data: project, select: { id: true } });
}

/** Names are unique within a project. */
export async function createEnvironment(
  db: Db,
  environment: EnvironmentRow,
): Promise<'created' | 'project_not_found' | 'name_taken'> {
  // Projects are never deleted, so one that exists here still exists for the insert.
  const project = await db.project.findUnique({ where: { id: environment.projectId }, select: { id: true } });
  if (project === null) return 'project_not_found';
  const { count } = await db.environment.createMany({ data: [environment], skipDuplicates: true });
  return count === 1 ? 'created' : 'name_taken';
}

/** Lists all projects, oldest first, without pages: a deployment has few. */
export function listProjects(db: Db): Promise<ProjectRow[]> {
  return db.project.findMany({ orderBy: { id: 'asc' } });
}

/** Lists environments, oldest first; null when the project does not exist. */
export async function listEnvironments(db: Db, projectId: string): Promise<EnvironmentRow[] | null> {
  const orderBy = { id: 'asc' as const };
  const project = await db.project.findUnique({ where: { id: projectId }, select: { environments: { orderBy } } });
  return project?.environments ?? null;
}

export async function environmentExists(db: Db, environmentId: string): Promise<boolean> {
  return (await db.environment.findUnique({ where: { id: environmentId }, select: { id: true } })) !== null;
}
