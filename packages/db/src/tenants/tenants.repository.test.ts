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

test('a project comes back as it was created, oldest first', async () => {
  await createProject(database.prisma, { ...project, id: 'proj_b' });
  expect(await listProjects(database.prisma)).toEqual([project, { ...project, id: 'proj_b' }]);
});

test('an environment needs a project that exists', async () => {
  const environment = { id: 'env_lost', projectId: 'proj_lost', name: 'dev', createdAt };
  expect(await createEnvironment(database.prisma, environment)).toBe('project_not_found');
  expect(await environmentExists(database.prisma, 'env_lost')).toBe(false);
  expect(await listEnvironments(database.prisma, 'proj_lost')).toBeNull();
});

test('of two environments of one name at once a project gets one, and another project may have that name', async () => {
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
