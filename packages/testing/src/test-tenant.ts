import { randomBytes } from 'node:crypto';
import { apiKeyHint, formatApiKey, hashApiKey, newId, SCOPES, type Tenant } from '@callplane/core';
import { createEnvironment, createProject, insertApiKey, type Database } from '@callplane/db';

export interface TestTenant extends Tenant {
  /** A secret key with all scopes. */
  readonly key: string;
  readonly keyId: string;
}

/** Creates a project with one environment and one key, as the admin command line does. */
export async function createTestTenant(database: Database): Promise<TestTenant> {
  const createdAt = new Date();
  const [projectId, environmentId, keyId] = [newId('project'), newId('environment'), newId('apiKey')];
  const key = formatApiKey('secret', randomBytes(32));
  await createProject(database.prisma, { id: projectId, name: 'Test', createdAt });
  await createEnvironment(database.prisma, { id: environmentId, projectId, name: 'test', createdAt });
  await insertApiKey(database.prisma, {
    id: keyId,
    environmentId,
    type: 'secret',
    name: null,
    keyHash: new Uint8Array(hashApiKey(key)),
    keyHint: apiKeyHint(key),
    scopes: [...SCOPES],
    createdAt,
    expiresAt: null,
  });
  return { projectId, environmentId, key, keyId };
}
