import type { Db, TypedSql } from '../client/database.js';
import type { Environment, Project } from '../generated/client.js';

export async function createProject(db: Db, project: Project): Promise<void> {
  await db.project.create({ data: project, select: { id: true } });
}

export async function createEnvironment(
  db: Db,
  environment: Environment,
): Promise<'created' | 'project_not_found' | 'name_taken'> {
  // Projects are never deleted, so one that exists here still exists for the insert.
  const project = await db.project.findUnique({ where: { id: environment.projectId }, select: { id: true } });
  if (project === null) return 'project_not_found';
  const { count } = await db.environment.createMany({ data: [environment], skipDuplicates: true });
  return count === 1 ? 'created' : 'name_taken';
}

/** Lists all projects, oldest first, without pages: a deployment has few. */
export function listProjects(db: Db): Promise<Project[]> {
  return db.project.findMany({ orderBy: { id: 'asc' } });
}

/** Lists environments, oldest first; null when the project does not exist. */
export async function listEnvironments(db: Db, projectId: string): Promise<Environment[] | null> {
  const orderBy = { id: 'asc' as const };
  const project = await db.project.findUnique({ where: { id: projectId }, select: { environments: { orderBy } } });
  return project?.environments ?? null;
}

/**
 * Lets transactions that count rows of an environment run one after the other, so that they cannot exceed a limit
 * together. Other work with the environment takes weaker locks.
 */
export async function lockEnvironment(tx: TypedSql, environmentId: string): Promise<void> {
  await tx.$executeRaw`SELECT FROM environments WHERE id = ${environmentId} FOR NO KEY UPDATE`;
}
