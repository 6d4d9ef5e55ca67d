import { createTestDatabase } from '@callplane/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Database } from '../client/database.js';
import {
  createEnvironment,
  createProject,
  environmentExists,
  listEnvironments,
  listProjects,
} from './tenants.repository.js';

const createdAt = new Date('2030-01-01T00:00:00.123Z');
const project = { id: 'proj_a', name: 'Café', createdAt };
let database: Database;

beforeAll(async () => {
  database = new Database({ url: (await createTestDatabase()).url, poolMax: 4 });
  await createProject(database.prisma, project);
});
afterAll(() => database.close());

test('lists projects as they were created, oldest first', async () => {
  await createProject(database.prisma, { ...project, id: 'proj_b' });
  expect(await listProjects(database.prisma)).toEqual([project, { ...project, id: 'proj_b' }]);
});

test('rejects an environment of a project that does not exist', async () => {
  const environment = { id: 'env_lost', projectId: 'proj_lost', name: 'dev', createdAt };
  expect(await createEnvironment(database.prisma, environment)).toBe('project_not_found');
  expect(await environmentExists(database.prisma, 'env_lost')).toBe(false);
  expect(await listEnvironments(database.prisma, 'proj_lost')).toBeNull();
});

test('gives a project one of two concurrent environments with the same name, and allows the name in another project', async () => {
  const create = (id: string, projectId: string) =>
    createEnvironment(database.prisma, { id, projectId, name: 'production', createdAt });
  const outcomes = await Promise.all([create('env_1', 'proj_a'), create('env_2', 'proj_a')]);
  expect(outcomes.sort()).toEqual(['created', 'name_taken']);
  expect(await listEnvironments(database.prisma, 'proj_a')).toEqual([
    { id: expect.stringMatching(/^env_[12]$/), projectId: 'proj_a', name: 'production', createdAt },
  ]);
  expect(await create('env_3', 'proj_b')).toBe('created');
  expect(await environmentExists(database.prisma, 'env_3')).toBe(true);
});
